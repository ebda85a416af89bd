package sim

import (
	"fmt"
	"time"

	"github.com/leaf-idgen/leaf/internal/sim/world"
)

// The kinds of faults that only segment mode knows, beside those of databases and of
// the cluster fence.
const (
	LinkTrouble     world.Kind = "network trouble of segment mode"
	ImageRestored   world.Kind = "node and database restored from one image"
	PowerCut        world.Kind = "nodes and primary lose power together"
	Degraded        world.Kind = "ranges taken without the cluster fence (degrade)"
	Repaired        world.Kind = "latched tag repaired"
	RepairedDeleted world.Kind = "latched tag without a row released"
	RepairedAbove   world.Kind = "latched tag repaired above what the tables have"
	RepairRefused   world.Kind = "repair refused because a node does not answer"
	WipedAnswering  world.Kind = "cluster fence wiped while it answered"
	FenceAway       world.Kind = "commits lost while, or just after, the cluster fence was away"
	FenceRebuilt    world.Kind = "fence file refused and made anew"
)

// faults implements mode.
func (m *segmentMode) faults() []fault {
	w := m.w
	all := append(m.applicationFaults(), []fault{
		{LinkTrouble, 8, m.linkTrouble},
		{world.DatabaseDown, 5, m.onDB(func(d *world.Database) bool {
			d.SetDown(true)
			w.sched.After(m.outage(), func() { d.SetDown(false) })
			return true
		})},
		{databaseTrouble, 4, m.onDB(m.trouble)},
		{rowLocking, 3, m.onTag(func(t *tag) bool {
			t.db.Lock(t.name, w.upTo(2*time.Minute))
			return true
		})},
		{world.Failover, 2, m.onDB(func(d *world.Database) bool { return m.failover(d, world.Failover, 0) })},
		{world.FailoverLoses, 3, m.onDB(func(d *world.Database) bool { return m.failover(d, world.FailoverLoses, 1+w.rng.IntN(20)) })},
		{world.Restored, 2, m.onDB(func(d *world.Database) bool {
			return m.goBack(d, world.Restored, w.upTo(w.sched.Elapsed()+1))
		})},
		{ImageRestored, 1, m.onDB(m.restoreImage)},
		{powerCutPlanned, 4, m.onDB(m.powerCut)},
		{world.SplitBrain, 2, m.onDB(m.splitBrain)},
		{world.DirectoryLost, 2, w.onStopped(m.loseDirectory)},
		{world.RowRecreated, 3, m.onTag(m.recreate)},
		{world.RowDeleted, 2, m.onTag(m.remove)},
		{world.RowCreated, 2, func() bool {
			if len(m.tags) >= 8 {
				return false
			}
			m.create(fmt.Sprintf("new-%d", len(m.tags)), 1+w.rng.Int64N(200))
			return true
		}},
		{world.StepEdited, 3, m.onTag(func(t *tag) bool { return m.edit(t, world.StepEdited, 1+w.rng.Int64N(500)) })},
		{world.StepHostile, 3, m.onTag(func(t *tag) bool {
			hostile := []int64{0, -1, 1<<30 + 1, 1 << 30, 1, -1 << 31}
			return m.edit(t, world.StepHostile, hostile[w.rng.IntN(len(hostile))])
		})},
	}...)
	if m.fence != nil {
		all = append(all,
			fault{world.FenceDown, 4, func() bool {
				if m.fence.Down {
					return false
				}
				m.fence.Down = true
				w.sched.After(m.outage(), func() { m.fence.Down = false })
				return true
			}},
			fault{fenceFull, 2, func() bool {
				m.fence.Mute = true
				w.sched.After(m.outage(), func() { m.fence.Mute = false })
				return true
			}},
			fault{FenceAway, m.fenceAway, m.onDB(m.loseAroundOutage)},
			fault{world.FenceWiped, 2, m.loseFence(func(time.Duration) { m.fence.Wipe() })},
			fault{wipePlanned, 2, m.onDB(m.wipeUnderAnswer)},
			fault{world.FenceRestored, 2, m.loseFence(m.fence.Restore)},
		)
	}
	if m.owners != nil {
		all = append(all, m.owners.faults()...)
	}
	return all
}

const (
	databaseTrouble world.Kind = "database trouble"
	rowLocking      world.Kind = "another session locks a row"
	fenceFull       world.Kind = "cluster fence is full"
	wipePlanned     world.Kind = "wipe of the cluster fence planned"
	powerCutPlanned world.Kind = "power cut planned"
)

// outage returns how long something is away: mostly seconds, now and then minutes.
func (m *segmentMode) outage() time.Duration {
	if m.w.rng.IntN(4) == 0 {
		return m.w.upTo(4 * time.Minute)
	}
	return m.w.upTo(40 * time.Second)
}

// onDB makes a strike on a random database that is whole and up.
func (m *segmentMode) onDB(f func(d *world.Database) bool) func() bool {
	return func() bool {
		d := m.dbs[m.w.rng.IntN(len(m.dbs))]
		return !d.Down() && !d.IsSplit() && f(d)
	}
}

// onTag makes a strike on a random tag that exists.
func (m *segmentMode) onTag(f func(t *tag) bool) func() bool {
	return func() bool {
		t := m.tags[m.w.rng.IntN(len(m.tags))]
		_, ok := t.db.Row(t.name)
		return ok && t.exists && f(t)
	}
}

// links implements mode.
func (m *segmentMode) links(n *Node) []*world.Link {
	s := m.node(n)
	var all []*world.Link
	for _, c := range s.dbs {
		all = append(all, &c.Link)
	}
	if s.fence != nil {
		all = append(all, s.fence)
	}
	if m.owners != nil {
		all = append(all, m.owners.link(n))
	}
	return all
}

// linkTrouble spoils one way of one node, or all ways to one server.
func (m *segmentMode) linkTrouble() bool {
	w := m.w
	n := w.nodes[w.rng.IntN(len(w.nodes))]
	i := w.rng.IntN(len(m.links(n)))
	links := []*world.Link{m.links(n)[i]}
	if w.rng.IntN(3) == 0 {
		links = nil
		for _, n := range w.nodes {
			links = append(links, m.links(n)[i])
		}
	}
	spoil := m.spoilt()
	for _, l := range links {
		spoil(l)
	}
	w.sched.After(m.outage(), func() {
		for _, l := range links {
			mend(l)
		}
	})
	return true
}

// spoilt draws what is wrong with a link.
func (m *segmentMode) spoilt() func(l *world.Link) {
	rng := m.w.rng
	chance := []float64{0.05, 0.3, 1}[rng.IntN(3)]
	switch rng.IntN(8) {
	case 0:
		return func(l *world.Link) { l.Cut(true) }
	case 1:
		return func(l *world.Link) { l.CutRequests = true }
	case 2:
		return func(l *world.Link) { l.CutReplies = true }
	case 3:
		return func(l *world.Link) { l.LoseRequest = chance }
	case 4:
		return func(l *world.Link) { l.LoseReply = chance }
	case 5:
		return func(l *world.Link) { l.Late = chance }
	case 6:
		return func(l *world.Link) { l.Twice = chance }
	default:
		return func(l *world.Link) { l.Latency = 3 * time.Second }
	}
}

func mend(l *world.Link) {
	l.Cut(false)
	l.LoseRequest, l.LoseReply, l.Late, l.Twice, l.Latency, l.Panic = 0, 0, 0, 0, 0, 0
}

// trouble makes a database slow, or lie about commits, or leave rows out of its list, or
// hang.
func (m *segmentMode) trouble(d *world.Database) bool {
	switch rng := m.w.rng; rng.IntN(4) {
	case 0:
		d.CutList = 0.2 + 0.8*rng.Float64()
	case 1:
		d.Slow = m.w.upTo(4 * time.Second)
	case 2:
		d.CommitError = 0.1 + 0.5*rng.Float64()
	default:
		d.Hang = 0.1 + 0.5*rng.Float64()
	}
	m.w.sched.After(m.outage(), func() { d.Slow, d.CommitError, d.CutList, d.Hang = 0, 0, 0, 0 })
	return true
}

// recreate deletes a row and makes it again: from 1, or from where it was, or where a repair
// meanwhile said that a new row must be.
func (m *segmentMode) recreate(t *tag) bool {
	w := m.w
	row, _ := t.db.Row(t.name)
	t.db.Put(world.RowDeleted, row, true)
	m.tell(t)
	m.drop()
	again := func() {
		if _, ok := t.db.Row(t.name); ok {
			return
		}
		m.drop()
		if row.MaxID = max(row.MaxID, t.db.Used(t.name)); w.rng.IntN(3) > 0 {
			row.MaxID = 1
		}
		row.Step = t.step
		t.db.Put(world.RowRecreated, row, false)
		m.tell(t)
		t.exists = true
	}
	t.exists = false
	if w.rng.IntN(2) == 0 {
		again()
	} else {
		w.sched.After(w.upTo(5*time.Minute), again)
	}
	return true
}

// remove deletes a row for good.
func (m *segmentMode) remove(t *tag) bool {
	alive := 0
	for _, t := range m.tags {
		if t.exists {
			alive++
		}
	}
	if alive < 3 {
		return false
	}
	row, _ := t.db.Row(t.name)
	t.exists = false
	t.db.Put(world.RowDeleted, row, true)
	m.tell(t)
	m.drop()
	return true
}

// edit sets a row's step.
func (m *segmentMode) edit(t *tag, k world.Kind, step int64) bool {
	row, _ := t.db.Row(t.name)
	row.Step = step
	if k == world.StepEdited {
		t.step = step
		if m.w.rng.IntN(3) == 0 {
			row.Options = t.options()
			row.Options.MinStep, row.Options.MaxStep, row.Options.FixedStep = 1+m.w.rng.Int64N(50), 50+m.w.rng.Int64N(500), m.w.rng.IntN(3) == 0
		}
	}
	t.most = max(t.most, row.Step, row.Options.MinStep, row.Options.MaxStep)
	t.db.Put(k, row, false)
	m.tell(t)
	return true
}
