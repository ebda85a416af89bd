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

// told returns the lowest start of a tag that leaf tag create takes: above what all nodes that run know.
func (m *segmentMode) told(t *tag) int64 {
	above := int64(1)
	for _, e := range m.running() {
		above = max(above, e.alloc.Mark(t.name).High)
	}
	return above
}

// found returns what docs/GUARANTEES.md says to find for --above: the highest number of the tag in people's own tables, and what to
// add. The tables do not have what clients got last.
func (m *segmentMode) found(t *tag) (highest, add int64) {
	upTo := m.w.sched.Elapsed() - m.w.upTo(10*time.Minute)
	highest, at, held := m.w.ledger.inTables(m.tables(t), upTo)
	if m.sequences != nil && t.strict { // blocks of the row show what calls have lost and skipped
		_, _, used := m.w.ledger.inTables([]Series{t.series()}, upTo)
		held = max(held, used)
	}
	ran := int64(len(m.w.nodes))
	for _, start := range m.w.starts {
		if start >= at {
			ran++
		}
	}
	if t.strict {
		ran += int64((m.w.sched.Elapsed() - at) / m.owners.lease)
	}
	largest := t.most
	if !m.cfg.FixedStep {
		largest = max(largest, m.cfg.MaxStep)
	}
	return highest, 3*largest*ran + held
}

// tables returns the series that people have in their tables of a tag: of a row of a sequence, those of all its entities.
func (m *segmentMode) tables(t *tag) (all []Series) {
	if m.sequences == nil || !t.strict {
		return []Series{t.series()}
	}
	for _, e := range m.sequences.entities {
		all = append(all, e.series())
	}
	return all
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
	var answered bool
	var err error
	if len(m.lost) == 0 || m.w.rng.IntN(2) == 0 {
		answered, err = m.tryRepair(e, t, 0)
	} else {
		answered, err = m.repairAbove(e, t)
	}
	if err != nil && m.goneForGood(t, err) {
		answered, err = m.repairAbove(e, t)
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

// repairAbove is a repair with a number, for nodes that are gone with their data directories. Where it is refused, the same is
// added to the number that the error names, but for the last one of a period.
func (m *segmentMode) repairAbove(e *segmentEngine, t *tag) (answered bool, err error) {
	highest, add := m.found(t)
	answered, err = m.tryRepair(e, t, highest+add)
	for range 2 {
		least, last, refused := leastAbove(err)
		if !answered || !refused || m.periods != nil && e.node.Machine.Wall().Sub(m.periods.now()).Abs() > longestAhead {
			break // of a period, the error says that the clock of the node must be right
		}
		if last {
			m.periods.spend(t, least)
			answered, err = m.tryRepair(e, t, least)
			break
		}
		answered, err = m.tryRepair(e, t, least+add)
	}
	if answered && err == nil {
		m.covered(t)
	}
	return answered, err
}

// covered ends what is exposed above a repair with a number: no node has issued that, and each node that
// runs was asked.
func (m *segmentMode) covered(t *tag) {
	floor, repaired := m.floors[t.name]
	if !repaired || t.db.IsSplit() || len(m.running()) < len(m.w.nodes) {
		return
	}
	for _, x := range m.running() {
		if x.missed[t.name] == floor {
			return
		}
	}
	m.endAbove(t.name, floor)
	m.w.faults.Hit(RepairedAbove)
}

// leastAbove returns the number that the refusal of another one names: what nodes know, or the first one of a period, or the
// last one.
func leastAbove(err error) (least int64, last, refused bool) {
	if err == nil {
		return 0, false, false
	}
	for _, before := range []string{"could repeat some; use ", "Take its first number, ", lastOfPeriod} {
		if _, text, found := strings.Cut(err.Error(), before); found {
			_, _ = fmt.Sscan(text, &least)
			return least, before == lastOfPeriod, true
		}
	}
	return 0, false, false
}

// lastOfPeriod is in front of the number of a repair after which a tag issues nothing until its next period.
const lastOfPeriod = "and the sum cannot be lower, give "

// tryRepair is one `leaf tag repair` on a node. answered: it ended before its node did.
func (m *segmentMode) tryRepair(e *segmentEngine, t *tag, above int64) (answered bool, err error) {
	done := make(chan struct{})
	run := func() {
		e.mending = true
		defer func() { e.mending = false }()
		ctx, cancel := e.proc.WithTimeout(context.Background(), 30*time.Second)
		defer cancel()
		// Under a cluster fence a node that does not answer keeps its stock, which is its own.
		var plan segment.RepairPlan
		if plan, err = e.alloc.RepairByPlan(ctx, t.name, above); err == nil && (m.fence == nil || m.cfg.Degrade) {
			m.floors[t.name] = max(m.floors[t.name], t.db.Repaired(t.name))
			if above == 0 {
				plan.Untold = nil // each of them has answered, and stopped
			}
			m.noteMissed(t, plan.Untold)
		}
		close(done)
	}
	e.proc.Go(run)
	if m.w.sched.World().Wait(context.Background(), done, time.Minute) != nil || e.proc.Dead() {
		return false, nil
	}
	return true, err
}

// goneForGood reports whether a repair waits for nothing but lost data directories, and the names of second processes
// where each node runs as one: the error says that such a name counts as gone for good.
func (m *segmentMode) goneForGood(t *tag, err error) bool {
	_, text, silent := strings.Cut(err.Error(), "nodes do not answer: ")
	list, _, start := strings.Cut(text, ": start them")
	if !silent || !start || len(m.running()) < len(m.w.nodes) {
		return false
	}
	names := strings.Split(list, ", ")
	for _, x := range m.running() {
		if name := x.node.Disk.Identity; m.copied(x.node) || x.members[t.db].Node != name || slices.Contains(names, name) {
			return false
		}
	}
	return !slices.ContainsFunc(names, func(name string) bool {
		return !slices.Contains(m.lost, name) && !strings.Contains(text, name+" counts as gone for good")
	})
}

// copied reports whether another machine has the node's identity.
func (m *segmentMode) copied(n *Node) bool {
	return slices.ContainsFunc(m.w.nodes, func(o *Node) bool { return o != n && o.Disk.Identity == n.Disk.Identity })
}

// startSilent starts again, as the error of a repair says, nodes that run under another name
// than their own although they have no copy: the database went back to the entry of a process
// that has ended, whose clock was ahead.
func (m *segmentMode) startSilent(t *tag) {
	for _, x := range m.running() {
		n, as := x.node, x.members[t.db].Node
		if as != "" && as != n.Disk.Identity && !m.copied(n) {
			n.Stop(func() { m.w.sched.After(time.Second, n.Start) })
		}
	}
}

// noteMissed notes which nodes a repair has not reached although they run: the plan says so of a repair with a number,
// or they are cut off or suspended, and the database lost their places on the list, or a copy that started took
// them (rule L).
func (m *segmentMode) noteMissed(t *tag, untold []string) {
	for _, x := range m.running() {
		if !t.db.Lists(x.members[t.db]) || slices.Contains(untold, x.members[t.db].Node) {
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
		err := fence.Rebuild(n.Disk.For(command), n.Disk.Identity, tags)
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
