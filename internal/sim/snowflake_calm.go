package sim

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/snowflake"
	"github.com/leaf-idgen/leaf/worker"
)

// heal implements mode.
func (m *snowflakeMode) heal() {
	for _, s := range m.sides {
		if s.registry != nil {
			s.registry.Server.Down, s.registry.CommitError, s.registry.LateBy = false, 0, 0
		}
	}
	for i, n := range m.w.nodes {
		c := m.claimant(n)
		for _, l := range c.links {
			if l != nil {
				fair(l)
			}
		}
		n.Disk.Full, n.Disk.Refuse, n.Disk.Lie, n.Disk.Slow = false, 0, 0, 0
		c.stray = false
		if own := fmt.Sprintf("10.0.0.%d:8080", i+1); n.Address != own || c.now != nil && c.now.stray {
			n.Kill()
			n.Address = own
		}
	}
	m.operate()
}

// more implements mode.
func (m *snowflakeMode) more() {
	for _, c := range m.nodes {
		if e := c.now; c.Up() && e.proc == c.Proc {
			e.proc.Go(func() { _ = e.take(500, &latest{}) })
		}
	}
}

// mend makes a node start that refused to.
func (m *snowflakeMode) mend(c *claimant, e *holder) {
	if e.stray && errors.Is(e.startErr, worker.ErrForeign) {
		return
	}
	if !errors.Is(e.startErr, leaf.ErrConflict) || e.side.registry != nil {
		m.w.Failf("%s does not start: %v", c.Name, e.startErr)
	}
	m.w.sched.Note("operator", "removes a damaged file")
	c.Kill()
	c.Disk.Remove(workerFile)
	c.Start()
}

// settled implements mode: every number that can be in use is, within the time that the
// last crash or wipe costs, and no node complains without cause.
func (m *snowflakeMode) settled() error {
	p := m.w.sched.World()
	var left string
	// A number that a wrong clock had put out of reach may come within reach of the horizon
	// as late as the last other one is free, and is waited for then.
	longest := m.longestHorizon()
	for end := m.w.sched.Elapsed() + max(9*time.Minute, longest+time.Minute) + longest; m.w.sched.Elapsed() < end; p.Sleep(5 * time.Second) {
		if left = m.unsettled(); left != "" {
			continue
		}
		if left = m.trial(); left != "" {
			break
		}
		return nil
	}
	return fmt.Errorf("snowflake mode: %s", left)
}

// longestHorizon returns the longest horizon of the registries: the nodes of all of them must
// serve.
func (m *snowflakeMode) longestHorizon() time.Duration {
	var longest time.Duration
	for _, s := range m.sides {
		longest = max(longest, s.horizon)
	}
	return longest
}

// unsettled says what is not as it should be, "" if all is well.
func (m *snowflakeMode) unsettled() string {
	var text strings.Builder
	for i, s := range m.sides {
		var ready int64
		for _, c := range m.nodes {
			if c.side != i {
				continue
			}
			if c.now.alarms.has(leaf.AlarmDisk) {
				return c.Name + " has an alarm about its disk, which is in order" // whatever else is wrong
			}
			st := c.now.Status()
			if !st.Ready {
				fmt.Fprintf(&text, "%s is %s: %s; ", c.Name, st.State, st.Reason)
				continue
			}
			complains := false
			for _, a := range c.now.alarms.active {
				if a.Code == leaf.AlarmClock && m.livesOnReserve(s, st) {
					continue
				}
				complains = true
				fmt.Fprintf(&text, "%s serves and has an alarm: %+v; ", c.Name, a)
			}
			if !complains {
				ready++
			}
		}
		if nodes, could := m.could(i, s); ready < could {
			return fmt.Sprintf("of %d nodes on the %s registry %d serve without an alarm, %d could: %s", nodes, s.name, ready, could, text.String())
		}
	}
	return ""
}

// could returns how many nodes are on a side, and how many of them could serve.
func (m *snowflakeMode) could(i int, s *side) (nodes, could int64) {
	counted := map[int64]bool{} // a copy of a machine has the number of its origin
	for _, c := range m.nodes {
		if c.side != i {
			continue
		}
		nodes++
		if own := m.mine(c, s).Lo; s.single && !counted[own] && !m.burned(s, own) {
			counted[own] = true
			could++
		}
	}
	if s.single {
		return nodes, could
	}
	for n := s.numbers.Lo; n < s.numbers.Hi; n++ {
		if !m.burned(s, n) && !slices.ContainsFunc(s.others(), func(a worker.Adoptable) bool { return a.Number == n }) {
			could++
		}
	}
	return nodes, min(could, nodes)
}

// barren implements mode.
func (m *snowflakeMode) barren() bool {
	for i, s := range m.sides {
		if _, could := m.could(i, s); could > 0 {
			return false
		}
	}
	return true
}

// livesOnReserve reports whether a node serves from what its number had in reserve when
// the clock stepped back. It says so until that is spent, and takes another number then.
func (m *snowflakeMode) livesOnReserve(s *side, st worker.Status) bool {
	return m.mayReserve(s) && st.Position > m.now()+time.Minute.Milliseconds()
}

// mayReserve reports whether nodes with other numbers to take use their reserve first.
func (m *snowflakeMode) mayReserve(s *side) bool {
	return m.policy == snowflake.UseReserved && s.kind == worker.Leased && !s.single
}

// others returns the numbers of another program, of which no node knows whether
// the address that may have one takes it.
func (s *side) others() []worker.Adoptable {
	if s.registry == nil {
		return nil
	}
	return s.registry.Others
}

// burned reports whether a wrong clock has put a number out of reach.
func (m *snowflakeMode) burned(s *side, number int64) bool {
	soon := m.now() + (s.horizon + 20*time.Second).Milliseconds()
	if s.registry == nil { // what the nodes' files know
		for _, c := range m.nodes {
			if c.inner[number] > soon {
				return true
			}
		}
	}
	if s.registry == nil {
		return false
	}
	r, _ := s.registry.Record(number)
	return max(r.Bound, r.Floor) > soon
}
