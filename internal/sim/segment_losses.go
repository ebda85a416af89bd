package sim

import (
	"fmt"
	"time"

	"github.com/leaf-idgen/leaf/internal/sim/world"
)

// failover goes on on a replica that misses some commits, after a moment without.
func (m *segmentMode) failover(d *world.Database, k world.Kind, missed int) bool {
	d.LoseLast(k, missed)
	m.interrupt(d)
	return true
}

// switchTo is failover to a replica that stopped to follow at some commit.
func (m *segmentMode) switchTo(d *world.Database, commits int) {
	d.GoBack(world.FailoverLoses, commits)
	m.interrupt(d)
}

// interrupt is the moment without a database that follows a failover.
func (m *segmentMode) interrupt(d *world.Database) {
	m.afterLoss(d)
	d.SetDown(true)
	m.w.sched.After(m.w.upTo(20*time.Second), func() {
		d.SetDown(false)
		m.rush()
	})
}

// rush makes all nodes want ranges of the same tags at once, as they do after an outage.
func (m *segmentMode) rush() {
	for _, e := range m.running() {
		for _, t := range m.tags {
			n := m.batch(t, 2, 200)
			e.proc.Go(func() { _ = e.try(t.name, n, time.Second, nil) })
		}
	}
}

// loseAroundOutage takes the cluster fence away for minutes, and with it commits of the
// database: while nodes do without the fence, or as soon as it is back. The database is
// at times slow, so that loads are under way when the fence comes back. At times nodes stop then, and
// return what they have of before the outage.
func (m *segmentMode) loseAroundOutage(d *world.Database) bool {
	w, f := m.w, m.fence
	if f.Down || f.Mute {
		return false
	}
	away := 30*time.Second + w.upTo(2*time.Minute)
	replica := d.Before(w.sched.Elapsed()) - w.rng.IntN(8) // does not follow from now on
	lose := func() {
		switch {
		case d.Down() || d.IsSplit() || w.calm:
		case w.rng.IntN(2) == 0:
			m.switchTo(d, replica)
		default:
			m.failover(d, world.FailoverLoses, 1+w.rng.IntN(8))
		}
	}
	switch w.rng.IntN(3) {
	case 0: // nodes have seen entries when it begins to refuse them, and took nothing since
		f.Mute = true
		m.rush()
		w.sched.After(w.upTo(2*time.Second), lose)
	case 1:
		f.Down = true
		w.sched.After(w.upTo(away), lose)
	default:
		f.Down = true
		w.sched.After(away+w.upTo(20*time.Second), lose)
	}
	for range 4 {
		w.sched.After(w.upTo(away), m.rush)
	}
	if w.rng.IntN(2) == 0 {
		w.sched.After(away-time.Second, func() {
			if w.calm {
				return
			}
			d.Slow = 3 * time.Second
			m.rush()
			w.sched.After(4*time.Second, func() { d.Slow = 0 })
		})
	}
	w.sched.After(away, func() { f.Down, f.Mute = false, false })
	if w.rng.IntN(2) == 0 {
		for _, n := range w.nodes[:1+w.rng.IntN(len(w.nodes))] {
			w.sched.After(away+w.upTo(5*time.Second), func() {
				if n.Up() && !w.calm {
					n.Stop(func() { w.restartLater(n) })
				}
			})
		}
	}
	return true
}

// loseFence takes the cluster fence back to an earlier moment, or to nothing, and at
// times the database before it, as an administrator does who restores all servers from one
// backup.
func (m *segmentMode) loseFence(lose func(to time.Duration)) func() bool {
	w := m.w
	return func() bool {
		to := w.upTo(w.sched.Elapsed() + 1)
		d := m.dbs[w.rng.IntN(len(m.dbs))]
		if w.rng.IntN(2) == 0 || d.Down() || d.IsSplit() {
			lose(to)
			return true
		}
		m.goBack(d, world.Restored, to)
		w.sched.After(w.upTo(5*time.Second), func() {
			if !w.calm {
				lose(to)
				m.forgetRepairs(d)
			}
		})
		return true
	}
}

// wipeUnderAnswer waits for a load to move the cluster fence, holds the answer, and wipes the
// fence meanwhile. The node of the load wants ranges of other tags, so it finds the loss and
// merges its fences before the answer is there. Later the database loses commits.
func (m *segmentMode) wipeUnderAnswer(d *world.Database) bool {
	w, f := m.w, m.fence
	if f.Next != nil {
		return false
	}
	f.Next = func(l *world.Link) {
		if w.calm {
			return
		}
		l.HoldReply = 500*time.Millisecond + w.upTo(1500*time.Millisecond)
		late := l.HoldReply
		w.sched.After(w.upTo(late/2), func() {
			if w.calm {
				return
			}
			w.took(WipedAnswering)
			f.Wipe()
			m.rush()
		})
		w.sched.After(late+w.upTo(30*time.Second), func() {
			if !w.calm && !d.Down() && !d.IsSplit() {
				m.failover(d, world.FailoverLoses, 1+w.rng.IntN(8))
			}
		})
	}
	return true
}

// forgetRepairs forgets the repairs of a database's tags. Neither the board nor the cluster
// fence knows them any more, so a node that was down then does not hear of them (rule L).
func (m *segmentMode) forgetRepairs(d *world.Database) {
	for _, t := range m.tags {
		if t.db == d {
			delete(m.floors, t.name)
		}
	}
}

// loseDirectory takes a node's data directory away, and another node takes its place. At times the primary is lost with it.
func (m *segmentMode) loseDirectory(n *Node) bool {
	m.lost = append(m.lost, n.Disk.Identity)
	n.Disk.Lose(fmt.Sprintf("%s-%d", n.Name, len(m.lost)))
	if d := m.dbs[m.w.rng.IntN(len(m.dbs))]; m.w.rng.IntN(2) == 0 && !d.Down() && !d.IsSplit() {
		m.failover(d, world.FailoverLoses, 1+m.w.rng.IntN(20))
	}
	return true
}

// powerCut waits for a reservation, ends some nodes a moment later, and goes on with a
// replica that misses the last commits.
func (m *segmentMode) powerCut(d *world.Database) bool {
	w := m.w
	if d.Next != nil {
		return false
	}
	d.Next = func() {
		w.sched.After(w.upTo(5*time.Millisecond), func() {
			if d.Down() || d.IsSplit() || w.calm {
				return
			}
			w.took(PowerCut)
			for _, n := range w.nodes {
				if w.rng.IntN(3) > 0 {
					n.Kill()
					w.sched.After(w.upTo(20*time.Second), n.Start)
				}
			}
			m.failover(d, world.FailoverLoses, 1+w.rng.IntN(3))
		})
	}
	return true
}

// goBack restores what the database was at a moment.
func (m *segmentMode) goBack(d *world.Database, k world.Kind, to time.Duration) bool {
	d.GoBack(k, d.Before(to))
	m.afterLoss(d)
	d.SetDown(true)
	m.w.sched.After(m.outage(), func() { d.SetDown(false) })
	return true
}

// restoreImage takes a node and a database back together, as the backup of a machine
// does on which both run.
func (m *segmentMode) restoreImage(d *world.Database) bool {
	w := m.w
	n := w.nodes[w.rng.IntN(len(w.nodes))]
	to := w.upTo(w.sched.Elapsed() + 1)
	n.Kill()
	n.Forgot = true
	n.Disk.RollBackAll(to)
	w.restartLater(n)
	return m.goBack(d, ImageRestored, to)
}

// splitBrain promotes a replica beside a primary that goes on.
func (m *segmentMode) splitBrain(d *world.Database) bool {
	w := m.w
	d.Split(w.rng.IntN(3))
	m.afterLoss(d)
	i := 0
	for d != m.dbs[i] {
		i++
	}
	for _, n := range w.nodes {
		m.node(n).dbs[i].Switch(w.rng.IntN(2) == 0)
	}
	w.sched.After(w.upTo(6*time.Minute), func() {
		if d.IsSplit() {
			d.Join(w.rng.IntN(2))
			m.afterLoss(d)
		}
	})
	return true
}

// afterLoss looks which tags are gone with the lost commits. An operator misses them, and
// makes them again above all that is in use.
func (m *segmentMode) afterLoss(d *world.Database) {
	for _, t := range m.tags {
		if t.db != d {
			continue
		}
		_, ok := d.MaxID(t.name)
		if ok != d.Everywhere(t.name) {
			m.drop() // nodes on one side of a split brain see no row
		}
		if ok != t.exists {
			t.exists = ok
			m.drop()
			m.w.sched.After(m.w.upTo(3*time.Minute), func() { m.restoreRow(t) })
		}
	}
}

// restoreRow makes a row again that was lost.
func (m *segmentMode) restoreRow(t *tag) {
	if _, ok := t.db.Row(t.name); ok || t.db.IsSplit() {
		return
	}
	m.drop()
	t.db.Put(world.RowRecreated, t.row(m.told(t)), false)
	m.tell(t)
	t.exists = true
}

// drop notes that a row is gone: nodes that see it drop their stock.
func (m *segmentMode) drop() {
	for _, e := range m.running() {
		e.dropped = true
	}
}
