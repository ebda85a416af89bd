package chaos

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// judge verifies the logs, counts the requests, and checks every promise.
func (r *run) judge(ctx context.Context, t topologyDef) error {
	rep := r.report
	samples := make([][]sample, len(r.clients))
	for i, c := range r.clients {
		var fault error
		samples[i], fault = c.results()
		rep.Requests += len(samples[i])
		if fault != nil {
			rep.check(false, "client of %s at node %s: %v", c.stream.name, c.node.name, fault)
		}
	}
	var err error
	if rep.Verdict, err = verify(ctx, r.cluster.folder, r.logs); err != nil {
		return err
	}
	r.count(samples)
	r.judgeIDs(t)
	r.judgeFaults(t, samples)
	r.judgeOrder(t, samples)
	r.judgeApplications(t)
	r.judgeSplits()
	r.judgeFiles(samples)
	r.judgeIdle()
	r.judgeTexts()
	return nil
}

// judgeIDs checks what must hold whatever happens.
func (r *run) judgeIDs(t topologyDef) {
	rep, v := r.report, r.report.Verdict
	examples := ""
	if len(v.Examples) > 0 {
		examples = "\n    " + strings.Join(v.Examples, "\n    ")
	}
	const atLeast = 1000 // a verdict over nothing is none
	rep.check(v.IDs >= atLeast, "%d IDs in %d logs (at least %d)", v.IDs, v.Logs, atLeast)
	if t.repeats {
		rep.check(true, "demonstration: %d IDs were issued by two nodes; without a cluster fence each node protects its own ranges only (rule L)%s", v.Duplicates, examples)
		rep.check(v.WithinNode == 0, "no node repeated an ID of its own: %d repeated", v.WithinNode)
	} else {
		rep.check(v.Duplicates == 0, "no ID twice: %d repeated%s", v.Duplicates, examples)
	}
	rep.check(v.Disorders == 0, "IDs of one process increase: %d replies out of order", v.Disorders)
	if r.cluster.registry {
		rep.check(v.Odd == 0, "the time in a snowflake ID is near that of its arrival: %d are not", v.Odd)
		rep.check(v.Turns == 0, "no worker ID is used by two processes in turns: %d are", v.Turns)
	}
}

// judgeFaults checks what must hold while faults are on.
func (r *run) judgeFaults(t topologyDef, samples [][]sample) {
	rep := r.report
	var never []string
	for _, k := range rep.Kinds {
		if k.Fired == 0 && r.groupOf(k.Name) != "" {
			never = append(never, k.Name)
		}
	}
	switch {
	case len(never) == 0:
		rep.check(true, "every kind of fault came")
	case rep.Enough && !rep.Failed():
		rep.check(false, "every kind of fault came, but not: %s", strings.Join(never, ", "))
	default:
		rep.check(true, "the run was too short for every kind of fault; these did not come: %s", strings.Join(never, ", "))
	}

	var stock, others, regress, atEnd []string
	complain := func(list *[]string, c *client, s sample) {
		*list = append(*list, fmt.Sprintf("%s at node %s after %.2f s: %s", c.stream.name, c.node.name, s.due.Seconds(), s.outcome))
	}
	end := rep.Ran - calm
	for i, c := range r.clients {
		number := slices.Index(r.cluster.nodes, c.node)
		for _, s := range samples[i] {
			bad := failed(s.outcome)
			if s.outcome == "regress" && !t.regress && c.stream.space != reborn && !r.without(c.stream, number, s.due) {
				complain(&regress, c, s)
			}
			if !bad {
				continue
			}
			if s.due > end {
				complain(&atEnd, c, s)
			}
			if c.stream.stock && s.due >= r.served && !r.down(number, s.due) {
				complain(&stock, c, s)
			}
			if e := r.at(s.due); e != nil && !e.Pair && e.Fault == nodeKilled && !slices.Contains(e.Nodes, number) && !c.stream.strict {
				complain(&others, c, s)
			}
		}
	}
	none := func(list []string, busy bool, text string) {
		first := ""
		if len(list) > 0 {
			first = ": " + strings.Join(list[:min(len(list), 5)], "; ")
		}
		rep.checkUnless(busy, len(list) == 0, "%s: %d%s", text, len(list), first)
	}
	starved := rep.Machine.Starved(rep.Ran)
	if starved {
		rep.check(true, "the machine was too busy to judge times: a byte that the run sent to itself took up to %v; latencies, waits and what follows from them are shown and not judged", rep.Machine.Worst.Round(time.Millisecond))
	}
	r.judgeLateness(starved)
	// A repair drops the stock of its tag: the load that follows may take its time.
	repaired := len(r.cluster.followed) > 0
	none(stock, starved && repaired, "a tag with stock is served whatever happens to database, registry, fence, network, disk, clocks and rows; requests that failed at nodes that ran")
	if slices.ContainsFunc(rep.Events, func(e Event) bool { return e.Fault == nodeKilled && !e.Pair }) {
		none(others, starved, "while one node is killed the others fail no request; requests that failed")
	}
	if !t.regress {
		none(regress, false, "no tag latches but the one whose row is re-created, and those of a node that lost its fence; refusals")
	}
	none(atEnd, starved, fmt.Sprintf("in the last %v every request is answered; requests that failed", calm))
}

// judgeLateness looks at each kind of fault by itself: one that makes half of its
// requests late must not hide behind others that last longer.
func (r *run) judgeLateness(starved bool) {
	var delayed Share
	var slow []string
	for _, k := range r.report.Kinds {
		delayed.InTime += k.Stock.InTime
		delayed.All += k.Stock.All
		// A busy machine makes a reply late now and then; a program that waits for what
		// is broken makes many late. One is allowed however few there are.
		if missing := k.Stock.All - k.Stock.InTime; missing > max(1, k.Stock.All/200) {
			slow = append(slow, fmt.Sprintf("%s: %d of %d late or failed", k.Name, missing, k.Stock.All))
		}
	}
	text := ""
	if len(slow) > 0 {
		text = "; but not " + strings.Join(slow, "; ")
		if starved {
			text += " (not judged, since the machine was too busy)"
		}
	}
	r.report.check(starved || len(slow) == 0, "a tag with stock is answered within %v at nodes that ran, in every kind of fault at least 99.5 %% or all but one: %s in all%s", deadline, delayed, text)
}

// judgeSplits checks that what was called a split brain was one. On a machine that was too busy, the nodes of one side may
// have had no time to use up their stock.
func (r *run) judgeSplits() {
	starved := r.report.Machine.Starved(r.report.Ran)
	for _, s := range r.cluster.splits {
		r.report.checkUnless(starved, s.former > 0 && s.new > 0, "in the split brain both sides took writes: %d numbers reserved in the former primary, %d in the new one", s.former, s.new)
	}
}

// failed reports whether a request got no IDs at all.
func failed(outcome string) bool { return outcome != ok && outcome != late && outcome != unsent }

// down reports whether a node was, at that time, the aim of a fault of nodes, or was
// not yet serving again since.
func (r *run) down(number int, at time.Duration) bool {
	for _, e := range r.report.Events {
		if r.groupOf(e.Fault) == ofNodes && slices.Contains(e.Nodes, number) && at > e.Begin-patience && at < e.Green {
			return true
		}
	}
	return false
}

// at returns the event that was on at that time, or whose clients were not all served
// again; of two the one that was healed last. nil if there is none.
func (r *run) at(due time.Duration) (found *Event) {
	for i := range r.report.Events {
		if e := &r.report.Events[i]; due >= e.Begin && due < e.Green {
			found = e
		}
	}
	return found
}

// period is a time that belongs to a row of the table of kinds.
type period struct {
	kind       string
	begin, end time.Duration
}

// spans divides the time in which there was a fault, or its aftermath.
func (r *run) spans() []period {
	var all []period
	events := r.report.Events
	for i := 0; i < len(events); i++ {
		e := events[i]
		if !e.Pair {
			all = append(all, period{e.Fault, e.Begin, e.Healed}, period{afterHeal, e.Healed, e.Green})
			continue
		}
		i++ // events of a pair follow one another
		all = append(all, period{twoAtOnce, e.Begin, events[i].Healed}, period{afterHeal, events[i].Healed, e.Green})
	}
	return all
}

func (r *run) groupOf(name string) group {
	for _, f := range r.cluster.faults {
		if f.name == name {
			return f.group
		}
	}
	return ""
}

// count fills the table of kinds.
func (r *run) count(samples [][]sample) {
	rep := r.report
	rep.Kinds = append(rep.Kinds, Kind{Name: twoAtOnce, About: "two of the faults above, on different things."},
		Kind{Name: afterHeal, About: "between a heal and the moment at which all clients had been served again."},
		Kind{Name: noFault, About: "all other time."})
	kinds := map[string]*Kind{}
	for i := range rep.Kinds {
		kinds[rep.Kinds[i].Name] = &rep.Kinds[i]
		rep.Kinds[i].Outcomes = map[string]int{}
	}
	after, quiet := kinds[afterHeal], kinds[noFault]
	quiet.On = rep.Ran
	for i, e := range rep.Events {
		k := kinds[e.Fault]
		k.Fired++
		if e.Pair {
			k = kinds[twoAtOnce]
			if i > 0 && rep.Events[i-1].Pair && rep.Events[i-1].Green == e.Green {
				k.Fired++ // once for both
			}
		}
		k.Slowest = max(k.Slowest, e.Green-e.Healed)
	}
	for _, span := range r.spans() {
		k := kinds[span.kind]
		k.On += span.end - span.begin
		quiet.On -= span.end - span.begin
	}
	for i, c := range r.clients {
		number := slices.Index(r.cluster.nodes, c.node)
		for _, s := range samples[i] {
			k, aimed := quiet, []int(nil)
			if e := r.at(s.due); e != nil {
				switch {
				case s.due >= e.Healed:
					k = after
				case e.Pair:
					k = kinds[twoAtOnce]
				default:
					k, aimed = kinds[e.Fault], e.Nodes
				}
			}
			inTime := s.outcome == ok
			if c.stream.strict {
				if s.due >= r.served && !r.down(number, s.due) {
					k.Strict.count(inTime)
					if !inTime {
						k.Outcomes["strict "+s.outcome]++
					}
				}
				continue
			}
			k.All.count(inTime)
			switch {
			case aimed == nil:
			case slices.Contains(aimed, number):
				k.Aimed.count(inTime)
			default:
				k.Other.count(inTime)
			}
			if c.stream.stock && s.due >= r.served && !r.down(number, s.due) {
				k.Stock.count(inTime)
			}
			if !inTime {
				k.Outcomes[s.outcome]++
			}
		}
	}
}

// outcomes lists what became of requests that were not answered in time.
func (k Kind) outcomes() string {
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(k.Outcomes)) {
		parts = append(parts, fmt.Sprintf("%d %s", k.Outcomes[name], name))
	}
	return strings.Join(parts, ", ")
}
