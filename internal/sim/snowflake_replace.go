package sim

import (
	"maps"
	"time"

	"github.com/leaf-idgen/leaf/internal/sim/world"
)

// replace moves all nodes of a side to another cluster, with their data directories. Its
// registry does not answer them at first. There, each number belongs to another node,
// which issues until its T: a node that goes on from its file repeats IDs of that cluster.
func (m *snowflakeMode) replace(s *side) bool {
	if s.registry.Namespace() == nil || len(m.nodes) == 0 {
		return false
	}
	i := 0
	for m.sides[i] != s {
		i++
	}
	old := s.registry
	s.moves++
	m.place(s)
	old.Wrote, old.Named = nil, nil // what is still on its way there changes nothing here
	s.wiped, s.gone, s.wrong, s.backup = nil, nil, false, nil
	s.wipes++
	if err := s.registry.Init(m.namespace()); err != nil {
		m.w.Failf("init of another cluster's registry: %v", err)
	}
	stranger := &holder{node: &claimant{Node: &Node{Name: "a node of another cluster"}}}
	until := m.now() + s.horizon.Milliseconds()
	for n := s.numbers.Lo; n < s.numbers.Hi; n++ {
		if err := s.registry.Hold(n, m.namespace(), m.now(), until); err != nil {
			m.w.Failf("a claim in another cluster: %v", err)
		}
		m.numbers[n] = &number{spans: []*span{{by: stranger, lo: m.layout.Ceil(m.now()), hi: m.layout.Ceil(until) - 1}}}
	}
	for _, c := range m.nodes {
		for _, bounds := range []map[int64]int64{c.acked, c.inner} { // of the old cluster's numbers
			maps.DeleteFunc(bounds, func(n, _ int64) bool { return s.numbers.Lo <= n && n < s.numbers.Hi })
		}
		l := &world.Link{Server: s.registry.Server, Faults: m.w.faults}
		c.links[i] = l
		if c.side != i {
			continue
		}
		l.Cut(true)
		m.w.sched.After(m.trouble(2*time.Minute), func() { l.Cut(false) })
		if c.Up() {
			c.Kill()
			m.w.sched.After(m.w.upTo(2*time.Second), c.Start)
		}
	}
	return true
}
