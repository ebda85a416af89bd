package sim

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/internal/sim/world"
	"github.com/leaf-idgen/leaf/segment"
	"github.com/leaf-idgen/leaf/segment/fence"
)

// operate is an operator who looks at the alarms every now and then and does what
// they and docs/GUARANTEES.md say.
func (m *segmentMode) operate() {
	me := m.w.sched.World()
	for {
		me.Sleep(20*time.Second + m.w.upTo(2*time.Minute))
		for _, e := range m.running() {
			for _, a := range e.alarms() {
				if !m.w.calm && m.w.rng.IntN(2) == 0 {
					continue // later
				}
				t := m.tag(a.Subject)
				switch {
				case t == nil:
				case a.Code == leaf.AlarmRegress:
					m.repair(t)
				case a.Code == leaf.AlarmRow && !t.db.Down():
					if row, ok := t.db.Row(t.name); ok && row.Step != t.step {
						row.Step = t.step
						t.db.Put(world.StepEdited, row, false)
						m.tell(t)
					}
				}
			}
		}
	}
}

// tell lets some nodes read a tag's row at once, as the commands do that change one.
func (m *segmentMode) tell(t *tag) {
	for _, e := range m.running() {
		if m.w.rng.IntN(2) == 0 {
			continue
		}
		e.proc.Go(func() {
			e.proc.Sleep(m.w.upTo(3 * time.Second))
			ctx, cancel := e.proc.WithTimeout(context.Background(), 5*time.Second)
			defer cancel()
			if err := e.alloc.Refresh(ctx, t.name); err != nil && leaf.ClassOf(err).Err == nil {
				m.w.Failf("%s: reading the row of %q anew got an error of no class: %v", e.node.Name, t.name, err)
			}
		})
	}
}

func (m *segmentMode) tag(name string) *tag {
	for _, t := range m.tags {
		if t.name == name {
			return t
		}
	}
	return nil
}

// known returns a number above all that are in use, as far as people can find out:
// above the largest ID in their tables, and above the fences of all nodes that run.
func (m *segmentMode) known(t *tag) int64 {
	above := m.w.ledger.highest(t.series()) + 1
	for _, e := range m.running() {
		above = max(above, e.alloc.Mark(t.name).High)
	}
	return above
}

// repair does what the alarm says, with no better knowledge: it runs `leaf tag repair
// TAG` on any one node. A tag whose row was deleted is released by it, too. Nodes
// that do not answer are started by others; the next round repeats the command.
func (m *segmentMode) repair(t *tag) {
	all := m.running()
	if len(all) == 0 {
		return
	}
	e := all[m.w.rng.IntN(len(all))]
	m.stopped[t.name] = true
	answered, err := m.tryRepair(e, t, 0)
	if err != nil && m.goneForGood(t, err) {
		answered, err = m.tryRepair(e, t, m.known(t)+generously)
		if first, refused := firstOfPeriod(err); answered && refused {
			answered, err = m.tryRepair(e, t, first+generously)
		}
	}
	switch {
	case !answered:
	case err == nil:
		m.w.faults.Hit(Repaired)
	case errors.Is(err, leaf.ErrUnknownTag) && !e.alloc.Mark(t.name).Latched:
		m.w.faults.Hit(RepairedDeleted)
	case errors.Is(err, segment.ErrSilentNodes):
		m.w.faults.Hit(RepairRefused)
		m.startSilent(t)
	}
}

// generously is what the error of a repair says to add to the highest number that is known:
// three times the largest range for each node, and what callers hold.
const generously = 10_000_000

// firstOfPeriod returns the number that the refusal of one of an earlier period names.
func firstOfPeriod(err error) (first int64, refused bool) {
	if err == nil {
		return 0, false
	}
	_, text, refused := strings.Cut(err.Error(), "Take its first number, ")
	if refused {
		_, _ = fmt.Sscan(text, &first)
	}
	return first, refused
}

// tryRepair is one `leaf tag repair` on a node. answered: it ended before its node did.
func (m *segmentMode) tryRepair(e *segmentEngine, t *tag, above int64) (answered bool, err error) {
	done := make(chan struct{})
	run := func() {
		e.mending = true
		defer func() { e.mending = false }()
		ctx, cancel := e.proc.WithTimeout(context.Background(), 30*time.Second)
		defer cancel()
		// Under a cluster fence a node that does not answer keeps its stock, which is its own.
		if _, err = e.alloc.Repair(ctx, t.name, above); err == nil && (m.fence == nil || m.cfg.Degrade) {
			m.floors[t.name] = max(m.floors[t.name], t.db.Repaired(t.name))
			m.noteMissed(t)
		}
		close(done)
	}
	e.proc.Go(run)
	if m.w.sched.World().Wait(context.Background(), done, time.Minute) != nil || e.proc.Dead() {
		return false, nil
	}
	return true, err
}

// goneForGood reports whether a repair waits for nothing but the names of second processes
// where each node runs as one: the error says that such a name counts as gone for good.
func (m *segmentMode) goneForGood(t *tag, err error) bool {
	_, text, silent := strings.Cut(err.Error(), "nodes do not answer: ")
	names, _, start := strings.Cut(text, ": start them")
	if !silent || !start || len(m.running()) < len(m.w.nodes) {
		return false
	}
	for _, x := range m.running() {
		if name := identity(x.node); m.copied(x.node) || x.members[t.db].Node != name || slices.Contains(strings.Split(names, ", "), name) {
			return false
		}
	}
	return strings.Contains(text, "counts as gone for good. ")
}

// copied reports whether another machine has the node's identity.
func (m *segmentMode) copied(n *Node) bool {
	return slices.ContainsFunc(m.w.nodes, func(o *Node) bool { return o != n && identity(o) == identity(n) })
}

// startSilent starts again, as the error of a repair says, nodes that run under another name
// than their own although they have no copy: the database went back to the entry of a process
// that has ended, whose clock was ahead.
func (m *segmentMode) startSilent(t *tag) {
	for _, x := range m.running() {
		n, as := x.node, x.members[t.db].Node
		if as != "" && as != identity(n) && !m.copied(n) {
			n.Stop(func() { m.w.sched.After(time.Second, n.Start) })
		}
	}
}

// noteMissed notes which nodes a repair has not reached although they run: they are cut off
// or suspended, and the database lost their places on the list, or a copy that started took
// them (rule L).
func (m *segmentMode) noteMissed(t *tag) {
	for _, x := range m.running() {
		if !t.db.Lists(x.members[t.db]) {
			x.missed[t.name] = m.floors[t.name]
		}
	}
}

// rebuildFence is `leaf fence rebuild` on a node that is down, and then its start. Every
// tag is latched, and operate repairs it.
func (m *segmentMode) rebuildFence(n *Node) {
	n.Kill()
	tags := map[string]int64{}
	for _, t := range m.tags {
		if t.db.Down() {
			n.Start() // the command refuses, and so does the node
			return
		}
		row, _ := t.db.Row(t.name)
		tags[t.name] = max(row.MaxID, t.db.Repaired(t.name))
	}
	command := n.Machine.Boot()
	command.Go(func() {
		err := fence.Rebuild(n.Disk.For(command), identity(n), tags)
		m.w.sched.After(0, func() {
			command.Kill()
			n.Forgot = true // a disk may do what it calls failed
			if err == nil {
				m.w.faults.Hit(FenceRebuilt)
			}
			n.Start() // which is refused again if the disk failed
		})
	})
}
