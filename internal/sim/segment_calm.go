package sim

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/internal/sim/world"
)

// heal implements mode.
func (m *segmentMode) heal() {
	for _, d := range m.dbs {
		d.Join(m.w.rng.IntN(2))
		d.SetDown(false)
		d.CommitError, d.Hang, d.Slow, d.CutList, d.Next = 0, 0, 0, 0, nil
	}
	if m.fence != nil {
		m.fence.Down, m.fence.Mute = false, false
	}
	if m.owners != nil {
		m.owners.heal()
	}
	for _, n := range m.w.nodes {
		for _, l := range m.links(n) {
			mend(l)
		}
	}
	for _, t := range m.tags {
		if _, ok := t.db.Row(t.name); t.exists && !ok { // it went with the losing side
			t.db.Put(world.RowRecreated, t.row(m.told(t)), false)
		} else {
			t.exists = ok
		}
	}
	m.w.sched.World().Go(func() {
		for {
			m.touch()
			m.w.sched.World().Sleep(30 * time.Second)
		}
	})
}

// touch asks every node for some IDs of every tag.
func (m *segmentMode) touch() {
	for _, e := range m.running() {
		for _, t := range m.tags {
			if t.exists {
				n := m.batch(t, 1, 25)
				e.proc.Go(func() {
					e.proc.Sleep(m.w.upTo(10 * time.Second)) // not all at one moment
					_ = e.try(t.name, n, time.Second, nil)
					_ = e.serves(t)
				})
			}
		}
	}
}

// more implements mode.
func (m *segmentMode) more() {
	for _, e := range m.running() {
		for _, t := range m.tags {
			if t.exists {
				e.proc.Go(func() { _ = e.try(t.name, m.batch(t, 5, 500), time.Second, nil) })
			}
		}
	}
}

// barren implements mode: a tag can always be made.
func (m *segmentMode) barren() bool { return false }

// settled implements mode. Machines that slept into the calm have two minutes more.
func (m *segmentMode) settled() error {
	me := m.w.sched.World()
	me.Sleep(2 * time.Minute)
	all := m.running()
	for range 60 { // the operator of snowflake mode restarts nodes, if both run
		if len(all) == len(m.w.nodes) {
			break
		}
		me.Sleep(time.Second)
		all = m.running()
	}
	if len(all) != len(m.w.nodes) {
		return fmt.Errorf("%d of %d nodes run", len(all), len(m.w.nodes))
	}
	var problems []string
	busy := map[*segmentEngine]bool{}
	for _, e := range all {
		busy[e] = true
		e.proc.Go(func() {
			for _, t := range m.tags {
				if !t.exists {
					continue
				}
				err := e.serves(t)
				if t.strict && m.owners.excuses(t, err) {
					continue // another node owns it
				}
				if errors.Is(err, leaf.ErrRegress) && m.latchedLately(t.name) {
					continue // some node has just seen a regress, and stopped the others
				}
				if m.periods.excuses(t) && leaf.ClassOf(err).Err != nil && !errors.Is(err, leaf.ErrRegress) {
					continue
				}
				if err != nil && !e.closing {
					problems = append(problems, fmt.Sprintf("%s does not serve %q: %v", e.node.Name, t.name, err))
				}
			}
			e.reload()
			delete(busy, e)
		})
	}
	asking := len(m.apps)
	for _, a := range m.apps {
		a.weather = 0
		a.start()
		a.proc.Go(func() {
			problems = append(problems, a.problems()...)
			asking--
		})
	}
	for left := time.Minute; left > 0 && len(busy)+asking > 0; left -= time.Second {
		me.Sleep(time.Second)
	}
	for _, e := range all {
		if busy[e] && !e.proc.Dead() { // else it was restarted
			problems = append(problems, e.node.Name+" does not end its calls")
		}
	}
	if m.owners != nil {
		problems = append(problems, m.owners.problems()...)
	}
	if asking > 0 {
		problems = append(problems, "an application does not end its calls")
	}
	me.Sleep(5 * time.Minute) // a load may find that the database went back: the operator needs time
	for _, e := range all {
		if e.closing || e.proc.Dead() {
			continue // restarted
		}
		problems = append(problems, e.problems()...)
		problems = append(problems, e.unmerged()...)
	}
	if len(problems) > 0 {
		slices.Sort(problems)
		return fmt.Errorf("%s", strings.Join(problems, "; "))
	}
	return nil
}

// serves asks for a number of the tag, or of an entity whose row the tag is.
func (e *segmentEngine) serves(t *tag) error {
	if t.strict && e.entities != nil {
		return e.mode.sequences.askAny(e, t.name)
	}
	return e.try(t.name, 1, 2*time.Second, nil)
}

// reload uses the stock of one tag up, so that the node loads, and with that looks at
// the cluster fence.
func (e *segmentEngine) reload() {
	for _, st := range e.alloc.Snapshot() {
		n := int(st.Current.Hi - st.Position + st.Next.Len() + 1)
		if t := e.mode.tag(st.Tag); t != nil && t.exists && n <= 5000 && e.try(st.Tag, n, 2*time.Second, nil) == nil {
			e.looked = true
			return
		}
	}
}

// unmerged returns the tags of which the cluster fence holds less than the node, that
// looked at the fence in the calm. One that was restored from a backup is another
// matter: only a tag whose entry is older than one that this process saw shows it.
func (e *segmentEngine) unmerged() (all []string) {
	m := e.mode
	if m.fence == nil || !e.looked || m.w.faults.Count(world.FenceRestored) > 0 {
		return nil
	}
	for _, t := range m.tags {
		if mark := e.alloc.Mark(t.name).High; t.exists && m.fence.End(t.name) < mark {
			all = append(all, fmt.Sprintf("%s holds numbers of %q up to %d, the cluster fence up to %d", e.node.Name, t.name, mark, m.fence.End(t.name)))
		}
	}
	return all
}
