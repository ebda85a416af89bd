package sim

import (
	"fmt"
	"time"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/internal/sim/world"
	"github.com/leaf-idgen/leaf/worker"
)

// The kinds of faults that strike in the calm at the nodes of one registry. Nothing else is wrong
// there and no operator looks, so the nodes must do by themselves what a restart would do. A
// node of the other registry may need an operator when it starts again, so it is left alone.
const (
	WrongPeer world.Kind = "one peer of several with a clock that is an hour off"
	LoneJump  world.Kind = "clock of a lone node jumps, stays, and steps back"
)

// patience is how long a node may take for what needs no wait.
const patience = 40 * time.Second

// trial strikes once all is well, and checks that the nodes serve within a bound. It
// returns "" if they do, or if no trial is possible.
func (m *snowflakeMode) trial() string {
	i := m.w.rng.IntN(len(m.sides))
	s := m.sides[i]
	var well []*claimant
	for _, c := range m.nodes {
		switch {
		case c.side != i:
		case !m.serves(c) || len(c.now.alarms.active) > 0:
			return "" // it would compete for a number
		default:
			well = append(well, c)
		}
	}
	m.w.rng.Shuffle(len(well), func(i, j int) { well[i], well[j] = well[j], well[i] })
	m.alone = s
	defer func() { m.alone = nil }()
	left := ""
	switch {
	case len(well) >= 3 && m.asks && s.registry != nil && m.w.rng.IntN(3) > 0:
		if m.returns(s, well[1]) {
			left = m.wrongPeer(s, well[0], well[1])
		}
	case len(well) > 0:
		left = m.loneJump(s, well[0])
	default:
		return ""
	}
	if left == "" && !m.within(m.longestHorizon()+5*time.Minute, func() bool { left = m.unsettled(); return left == "" }) {
		return "after a trial: " + left
	}
	return left
}

// returns reports whether a node that serves would serve again soon after a restart. One with
// a fixed number that was claimed while its clock was a year ahead goes on after its clock is
// right, on the time that it has reserved; after a restart it would wait for the number's T.
func (m *snowflakeMode) returns(s *side, c *claimant) bool {
	return s.kind == worker.Leased || !m.burned(s, c.now.Status().Number)
}

// within waits until a condition holds, for d at most.
func (m *snowflakeMode) within(d time.Duration, holds func() bool) bool {
	for end := m.w.sched.Elapsed() + d; !holds(); m.w.sched.World().Sleep(time.Second) {
		if m.w.sched.Elapsed() >= end {
			return false
		}
	}
	return true
}

// serves reports whether a node is up and issues.
func (m *snowflakeMode) serves(c *claimant) bool {
	e := c.now
	return c.Up() && e.proc == c.Proc && e.Holder != nil && e.Status().Ready
}

// says tells what is wrong with a node.
func (m *snowflakeMode) says(c *claimant) string {
	st := c.now.Status()
	return fmt.Sprintf("%s: %s, alarms %+v", st.State, st.Reason, c.now.alarms.active)
}

// wrongPeer lets one peer's clock be an hour off, and starts a node whose clock is right.
func (m *snowflakeMode) wrongPeer(s *side, wrong, right *claimant) string {
	m.w.faults.Hit(WrongPeer)
	hour := pick(m.w.rng, time.Hour, -time.Hour)
	switch m.w.rng.IntN(4) {
	case 0, 1: // it trusts the clock that it tells
		wrong.tells = hour
		defer func() { wrong.tells = 0 }()
	case 2:
		hour = time.Hour
		wrong.Machine.Step(hour)
		defer func() { wrong.Machine.Step(-hour) }()
	default:
		wrong.Kill()
		wrong.Machine.Step(hour)
		defer func() { wrong.Machine.Step(-hour) }()
		wrong.Start()
	}
	m.w.sched.World().Sleep(m.w.upTo(20 * time.Second)) // its session may end before, or not
	right.Kill()
	right.Start()
	if !m.within(s.horizon+patience, func() bool { return m.serves(right) }) {
		return fmt.Sprintf("%s does not serve, %v after its start, with one peer of several, %s, an hour off: %s", right.Name, s.horizon+patience, wrong.Name, m.says(right))
	}
	return ""
}

// loneJump lets the clock of a node without peers jump, stay there, and step back.
func (m *snowflakeMode) loneJump(s *side, c *claimant) string {
	m.w.faults.Hit(LoneJump)
	for _, other := range m.nodes {
		if other != c && other.side == c.side && other.Up() {
			other.Stop(func() {})
			defer other.Start()
		}
	}
	m.w.sched.World().Sleep(50 * time.Second) // until they are no peers any more
	jump := pick(m.w.rng, 16*time.Second, time.Minute, 3*time.Minute, 3*time.Minute) + m.w.upTo(10*time.Second)
	c.Machine.Step(jump)
	stands := max(15*time.Second, jump-s.horizon)
	m.w.sched.World().Sleep(20 * time.Second) // until it has noticed
	if !m.within(stands+patience, func() bool { return m.serves(c) && len(c.now.alarms.active) == 0 }) {
		return fmt.Sprintf("%s does not serve, %v after its clock jumped by %v, alone: %s", c.Name, c.Machine.Stood(), jump, m.says(c))
	}
	bound := jump + patience
	if m.spare(s) {
		bound = patience
	}
	c.Machine.Step(-jump)
	m.w.sched.World().Sleep(5 * time.Second)
	if !m.within(bound, func() bool {
		return m.serves(c) && (m.mayReserve(s) || !c.now.alarms.has(leaf.AlarmClock))
	}) {
		return fmt.Sprintf("%s does not serve, %v after its clock stepped back by %v, alone: %s", c.Name, c.Machine.Stood(), jump, m.says(c))
	}
	return ""
}

// spare reports whether a leased number is of use at once and free.
func (m *snowflakeMode) spare(s *side) bool {
	if s.kind != worker.Leased || len(s.others()) > 0 {
		return false
	}
	for n := s.numbers.Lo; n < s.numbers.Hi; n++ {
		if r, ok := s.registry.Record(n); ok && r.Bound < m.now() || !ok && s.registry.Namespace().IssueFrom < m.now() {
			return true
		}
	}
	return false
}
