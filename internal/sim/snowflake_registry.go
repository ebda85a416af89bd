package sim

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/leaf-idgen/leaf/internal/sim/world"
)

// registryFaults strike one of the registries.
func (m *snowflakeMode) registryFaults() []fault {
	w := m.w
	some := func(f func(s *side) bool) func() bool {
		return func() bool { return f(m.sides[w.rng.IntN(len(m.sides))]) }
	}
	number := func(f func(s *side, number int64) bool) func() bool {
		return some(func(s *side) bool {
			known := s.registry.Numbers()
			return len(known) > 0 && f(s, known[w.rng.IntN(len(known))])
		})
	}
	return []fault{
		{RegistryDown, 4, some(func(s *side) bool {
			s.registry.Server.Down = true
			w.sched.After(m.trouble(pick(w.rng, 30*time.Second, 90*time.Second, 5*time.Minute)), func() { s.registry.Server.Down = false })
			return true
		})},
		{RegistryCut, 6, m.onLink(func(l *world.Link) {
			w.cut(l)
			w.sched.After(m.trouble(4*time.Minute), func() { l.Cut(false) })
		})},
		{RegistryWeather, 8, m.onLink(func(l *world.Link) {
			w.badWeather(l)
			w.sched.After(m.trouble(5*time.Minute), func() { fair(l) })
		})},
		{RegistryUnsure, 3, some(func(s *side) bool {
			s.registry.CommitError = 0.3
			w.sched.After(w.upTo(3*time.Minute), func() { s.registry.CommitError = 0 })
			return true
		})},
		{world.ClaimDeleted, 3, number(func(s *side, n int64) bool {
			return s.registry.DeleteClaim(n)
		})},
		{world.ClaimTaken, 3, number(func(s *side, n int64) bool {
			return s.registry.Overwrite(n, fmt.Sprintf("somebody/%d", w.sched.Elapsed()))
		})},
		{world.ClaimFreed, 4, number(func(s *side, n int64) bool {
			return s.registry.Free(n) == nil
		})},
		{world.RegistryWiped, 3, some(func(s *side) bool { return w.rng.IntN(2) == 0 && m.wipe(s) || m.wipeAmidClaims(s) })},
		{world.RecordsDeleted, 3, some(m.forget)},
		{world.CommitsLost, 3, some(func(s *side) bool {
			replica := s.registry.Backup()
			m.rush()
			registry, wipes := s.registry, s.wipes
			w.sched.After(w.upTo(20*time.Second), func() {
				if s.registry != registry || s.wipes != wipes { // as a backup, the replica ends with a wipe
					return
				}
				m.restore(s, replica, world.CommitsLost)
				m.scatter()
			})
			return true
		})},
		{world.RegistryOld, 2, some(func(s *side) bool {
			if s.backup == nil || s.registry.Namespace() == nil {
				return false
			}
			m.restore(s, s.backup, world.RegistryOld)
			m.scatter()
			return true
		})},
		{world.SessionGone, 2, some(func(s *side) bool { return s.registry.ExpireSession() })},
		{sessionsLate, 2, some(func(s *side) bool {
			s.registry.LateBy = w.upTo(5 * time.Minute)
			return true
		})},
	}
}

// onLink makes a strike on the way of a random node to one of its registries, or of
// all nodes.
func (m *snowflakeMode) onLink(f func(l *world.Link)) func() bool {
	return func() bool {
		if len(m.nodes) == 0 {
			return false
		}
		s := m.w.rng.IntN(len(m.sides))
		if m.w.rng.IntN(4) == 0 {
			for _, c := range m.nodes {
				f(c.links[s])
			}
			return true
		}
		f(m.nodes[m.w.rng.IntN(len(m.nodes))].links[s])
		return true
	}
}

// trouble returns how long calls will fail, at most for d, and remembers it.
func (m *snowflakeMode) trouble(d time.Duration) time.Duration {
	d = m.w.upTo(d)
	m.troubled = max(m.troubled, m.w.sched.Elapsed()+d)
	return d
}

// links implements mode.
func (m *snowflakeMode) links(n *Node) []*world.Link {
	return slices.DeleteFunc(slices.Clone(m.claimant(n).links), func(l *world.Link) bool { return l == nil })
}

// cut cuts a way, in one direction or both.
func (w *World) cut(l *world.Link) {
	l.CutRequests, l.CutReplies = true, true
	switch w.rng.IntN(4) {
	case 0:
		l.CutRequests = false
	case 1:
		l.CutReplies = false
	}
}

// badWeather makes a way slow and unsure, until fair.
func (w *World) badWeather(l *world.Link) {
	chance := func() float64 { return float64(w.rng.IntN(4)) / 10 }
	l.LoseRequest, l.LoseReply, l.Late, l.Twice = chance(), chance(), chance(), chance()
	l.Latency = 1 + w.upTo(time.Second)
}

func fair(l *world.Link) {
	l.LoseRequest, l.LoseReply, l.Late, l.Twice, l.Latency, l.LateBy, l.Panic = 0, 0, 0, 0, 0, 0, 0
	l.Cut(false)
}

// wipe deletes everything in a registry.
func (m *snowflakeMode) wipe(s *side) bool { return m.empty(s, s.registry.Wipe) }

// forget deletes the records of all numbers in a registry. The next claimer sees that.
func (m *snowflakeMode) forget(s *side) bool {
	return len(s.registry.Numbers()) > 0 && m.empty(s, s.registry.Forget)
}

// empty empties a registry, and remembers what its numbers were held until.
func (m *snowflakeMode) empty(s *side, how func()) bool {
	if s.registry.Namespace() == nil {
		return false
	}
	for _, c := range m.nodes {
		if c.stray || m.w.sched.Elapsed() < c.until {
			return false // its request would be the first one to come, and all others were refused
		}
	}
	right := m.now() + (s.horizon + clocksRight + m.layout.Unit).Milliseconds()
	if s.wiped == nil {
		s.wiped = map[int64]int64{}
	}
	for _, n := range s.registry.Numbers() {
		r, _ := s.registry.Record(n)
		s.wiped[n] = max(s.wiped[n], r.Bound)
	}
	for n, t := range s.gone {
		s.wiped[n] = max(s.wiped[n], t)
	}
	for _, t := range s.wiped {
		s.wrong = s.wrong || t > right
	}
	how()
	s.wipes++
	s.backup, s.wipedAt = nil, m.w.sched.Elapsed()
	return true
}

// dropNamespace deletes the namespace of a registry. The numbers that have a record keep
// their T: only those of an earlier wipe may be used from the moment on that the next
// namespace says.
func (m *snowflakeMode) dropNamespace(s *side) {
	if s.wiped == nil {
		s.wiped = map[int64]int64{}
	}
	right := m.now() + (s.horizon + clocksRight + m.layout.Unit).Milliseconds()
	for n, t := range s.gone {
		s.wiped[n] = max(s.wiped[n], t)
		s.wrong = s.wrong || t > right
	}
	s.registry.DropNamespace()
	s.wipes++
	s.backup, s.wipedAt = nil, m.w.sched.Elapsed()
}

// wipeAmidClaims wipes a registry while nodes claim: between their looks and their
// writes, some of which are late.
func (m *snowflakeMode) wipeAmidClaims(s *side) bool {
	if s.registry.Namespace() == nil {
		return false
	}
	for _, c := range m.nodes {
		if m.sides[c.side] != s {
			continue
		}
		l := c.links[c.side]
		l.Latency, l.LateBy = 800*time.Millisecond, 10*time.Second
		if m.w.rng.IntN(2) == 0 {
			l.Late = 0.2
		}
		m.w.sched.After(m.trouble(time.Minute), func() { fair(l) })
		if c.Up() {
			c.Kill()
			m.w.sched.After(m.w.upTo(time.Second), c.Start)
		}
	}
	m.w.sched.After(m.w.upTo(4*time.Second), func() { m.wipe(s) })
	return true
}

// restore sets a registry back. No node can see that a T is lower than what was
// acknowledged, but the owner, when it renews.
func (m *snowflakeMode) restore(s *side, b *world.Backup, kind world.Kind) {
	from := map[int64]int64{}
	for _, l := range s.registry.Restore(b, kind) {
		from[l.Number] = l.From
		to := l.To
		for _, c := range m.nodes {
			if c.stale != nil && c.stale.number == l.Number {
				to = min(to, c.stale.inner) // its file went back, too, and may now be believed
			}
		}
		m.allow(kind, l.Number, to, l.From)
	}
	if s.registry.Namespace() == nil { // the backup is from before it had one
		if s.wiped == nil {
			s.wiped = map[int64]int64{}
		}
		maps.Copy(s.wiped, from)
		s.wrong = true
		s.wipes++
	}
}
