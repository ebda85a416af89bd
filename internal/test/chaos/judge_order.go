package chaos

import (
	"fmt"
	"slices"
	"strings"
)

// leaves reports whether a fault ends the process of a node in an orderly way.
func leaves(fault string) bool { return fault == nodeStopped || fault == nodeDrained }

// judgeOrder checks what tags in strict order promise: their order, and that callers of nodes that run wait for a new owner
// and get no error, when one node ends and nothing else is broken.
func (r *run) judgeOrder(t topologyDef, samples [][]sample) {
	rep, v := r.report, r.report.Verdict
	const atLeast = 100 // a verdict over nothing is none
	rep.check(v.Later >= atLeast, "tags in strict order: %d replies to calls that began after another call of the tag had ended (at least %d)", v.Later, atLeast)
	if t.unordered {
		rep.check(true, "demonstration: %d of them were not larger than the reply before; the database loses what it has acknowledged", v.Inversions)
	} else {
		rep.check(v.Inversions == 0, "each is larger than all replies before: %d are not", v.Inversions)
	}
	var failures []string
	for i, c := range r.clients {
		if !c.stream.strict {
			continue
		}
		number := slices.Index(r.cluster.nodes, c.node)
		for _, s := range samples[i] {
			if s.outcome != ok && s.outcome != unsent && r.mustBeServed(number, s) {
				failures = append(failures, fmt.Sprintf("%s at node %s after %.2f s: %s, %.2f s later", c.stream.name, c.node.name, s.due.Seconds(), s.outcome, s.latency.Seconds()))
			}
		}
	}
	text := strings.Join(append([]string{""}, failures[:min(len(failures), 5)]...), "; ")
	rep.checkUnless(rep.Machine.Starved(rep.Ran), len(failures) == 0,
		"tags in strict order, while nothing is broken, and while one node is killed, stopped or drained: %d requests to the others got no answer within %v%s", len(failures), strictDeadline, text)
}

// mustBeServed reports whether during the whole of a request nothing was broken but another node that had ended.
func (r *run) mustBeServed(number int, s sample) bool {
	if s.due < r.served {
		return false
	}
	for _, e := range r.report.Events {
		if s.due >= e.Green || s.due+s.latency < e.Begin {
			continue
		}
		if e.Pair || e.Fault != nodeKilled && !leaves(e.Fault) || slices.Contains(e.Nodes, number) {
			return false
		}
	}
	return true
}
