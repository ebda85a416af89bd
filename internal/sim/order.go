package sim

import (
	"fmt"
	"time"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/internal/owner"
	"github.com/leaf-idgen/leaf/internal/sim/sched"
	"github.com/leaf-idgen/leaf/internal/sim/world"
	"github.com/leaf-idgen/leaf/worker"
)

// The kinds of faults of the registry of slots.
const (
	SlotsDown      world.Kind = "registry of slots down"
	SlotsCut       world.Kind = "a way to the registry of slots cut, in one direction or both"
	SlotsWeather   world.Kind = "bad weather on a way to the registry of slots"
	SlotsUnsure    world.Kind = "registry of slots answers writes with errors"
	SlotDeleted    world.Kind = "record of a slot or a session deleted"
	SlotsForgotten world.Kind = "all records of slots and sessions deleted"
	SlotsWiped     world.Kind = "registry of slots wiped"
	SlotsRenamed   world.Kind = "namespace of slots deleted"
)

// owners is strict order in segment mode: a registry of slots, the nodes' ways to it, and the check that
// it is for. A call that begins after another one has ended gets larger IDs, whatever nodes
// they ask. For a counter whose numbers may have gaps that is linearizability: the order of the numbers is
// the only candidate, and two such calls are the only contradiction.
type owners struct {
	mode     *segmentMode
	registry *world.Registry
	ways     map[*Node]*world.Link
	done     map[string]int64 // the highest ID of each tag that a call has ended with
	served   map[*tag]bool    // in the calm, by some node
	lease    time.Duration
}

// newOwners makes the registry. A run with a short lease takes long.
func newOwners(m *segmentMode, leases ...time.Duration) *owners {
	return &owners{
		mode: m, ways: map[*Node]*world.Link{}, done: map[string]int64{}, served: map[*tag]bool{},
		lease:    pick(m.w.rng, leases...),
		registry: world.NewRegistry(m.w.sched, &world.Server{Name: "slots"}, m.w.faults, worker.Info{Name: "slots"}),
	}
}

// open makes a process's part.
func (o *owners) open(n *Node, p *sched.Process) (*owner.Slots, error) {
	return owner.New(o.registry.Open(p, o.link(n)), owner.Config{Address: n.Name, Namespace: "sim", Slots: 3, Lease: o.lease, Runtime: p, Elapsed: n.Machine.Elapsed})
}

func (o *owners) link(n *Node) *world.Link {
	if o.ways[n] == nil {
		o.ways[n] = &world.Link{Server: o.registry.Server, Faults: o.mode.w.faults}
	}
	return o.ways[n]
}

// check takes what a call of a strict tag got. done is what was done when it began. A tag whose row went
// back where no cluster fence could see it has lost its order with it.
func (o *owners) check(e *segmentEngine, name string, got []leaf.Range, done int64) {
	if t := o.mode.tag(name); t == nil || !t.strict {
		return
	}
	if got[0].Lo <= done && len(o.mode.exposed[name]) == 0 {
		o.mode.w.Failf("%s: a call got %v of %q, and one that had ended before it began got %d", e.node.Name, got, name, done)
	}
	o.done[name] = max(o.done[name], got[len(got)-1].Hi-1)
}

// excuses reports whether a node need not serve a strict tag in the calm: another one does.
func (o *owners) excuses(t *tag, err error) bool {
	if err == nil {
		o.served[t] = true
	}
	return leaf.ClassOf(err).Err == leaf.ErrNotReady //nolint:errorlint // it is the sentinel of the class
}

// problems returns the strict tags that no node serves.
func (o *owners) problems() (all []string) {
	for _, t := range o.mode.tags {
		if t.strict && t.exists && !o.served[t] && !o.mode.latchedLately(t.name) && !o.mode.periods.excuses(t) {
			all = append(all, fmt.Sprintf("no node serves %q", t.name))
		}
	}
	return all
}

func (o *owners) heal() {
	o.registry.Server.Down, o.registry.CommitError = false, 0
}

func (o *owners) faults() []fault {
	w := o.mode.w
	way := func() *world.Link { return o.link(w.nodes[w.rng.IntN(len(w.nodes))]) }
	act := func(f func()) func() bool {
		return func() bool {
			if o.registry.Namespace() == nil {
				return false
			}
			f()
			return true
		}
	}
	return []fault{
		{SlotsDown, 4, func() bool {
			o.registry.Server.Down = true
			w.sched.After(w.upTo(pick(w.rng, 2*time.Second, 20*time.Second, time.Minute)), func() { o.registry.Server.Down = false })
			return true
		}},
		{SlotsCut, 10, func() bool {
			l := way()
			w.cut(l)
			w.sched.After(w.upTo(pick(w.rng, 3*time.Second, 10*time.Second, time.Minute)), func() { l.Cut(false) })
			return true
		}},
		{SlotsWeather, 8, func() bool {
			l := way()
			w.badWeather(l)
			l.LateBy = 1 + w.upTo(20*time.Second)
			w.sched.After(w.upTo(3*time.Minute), func() { fair(l) })
			return true
		}},
		{SlotsUnsure, 4, func() bool {
			o.registry.CommitError = 0.3
			w.sched.After(w.upTo(3*time.Minute), func() { o.registry.CommitError = 0 })
			return true
		}},
		{SlotDeleted, 6, func() bool {
			known := o.registry.Numbers()
			return len(known) > 0 && o.registry.DeleteClaim(known[w.rng.IntN(len(known))])
		}},
		{SlotsForgotten, 2, act(func() { o.registry.Forget() })},
		{SlotsWiped, 2, act(func() { o.registry.Wipe() })},
		{SlotsRenamed, 2, act(func() { o.registry.DropNamespace() })},
	}
}
