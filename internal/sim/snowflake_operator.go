package sim

import (
	"errors"
	"time"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/worker"
)

// operate is an operator's look at the alarms, every minute or two.
func (m *snowflakeMode) operate() {
	pause := time.Minute + m.w.upTo(time.Minute)
	if m.w.calm {
		pause = 20 * time.Second
	}
	m.w.sched.After(pause, m.operate)
	for _, s := range m.sides {
		if s.registry != nil && s.wiped == nil && m.w.rng.IntN(5) == 0 {
			s.backup = s.registry.Backup()
		}
	}
	for _, c := range m.nodes {
		if m.sides[c.side] == m.alone {
			continue
		}
		if e := c.now; c.Up() && e != nil && e.proc == c.Proc && !c.Proc.Paused() {
			m.attend(c, e)
		}
	}
}

// attend acts on what a node says.
func (m *snowflakeMode) attend(c *claimant, e *holder) {
	if e.startErr != nil {
		m.mend(c, e)
		return
	}
	if e.alarms.has(leaf.AlarmClock) {
		switch off := c.Machine.Offset(); {
		case off.Abs() < time.Second:
			e.proc.Go(func() {
				if c.Machine.Offset().Abs() < time.Second {
					e.boot = max(e.boot, c.Machine.Offset())
					_, _ = e.ConfirmClock() // it fails only if no ID can have the time
				}
			})
		case m.w.calm || m.w.rng.IntN(3) == 0:
			c.Machine.Step(-off)
		}
	}
	switch {
	case e.side.registry == nil:
	case e.alarms.says(leaf.AlarmClaim, worker.ErrAhead.Error()):
		m.mendNamespace(e.side)
	case e.alarms.has(leaf.AlarmClaim):
		m.freeDead(e.side)
	}
	if m.w.calm {
		m.rescue(c, e)
	}
}

// rescue restarts a node whose fixed number a wrong clock has put out of reach. A node
// with a leased number takes another one by itself.
func (m *snowflakeMode) rescue(c *claimant, e *holder) {
	st := e.Status()
	if st.Ready && len(e.alarms.active) == 0 || e.side.single || e.side.registry == nil || e.side.kind == worker.Leased {
		return
	}
	if errors.Is(st.Err, leaf.ErrClock) || st.Number >= 0 && st.Position > m.now()+time.Minute.Milliseconds() {
		if e.rescued++; e.rescued == 5 {
			m.w.sched.Note("operator", "restarts a node whose number is out of reach")
			c.Stop(func() { m.w.sched.After(time.Second, c.Start) })
		}
	}
}

// mendNamespace does what the alarm of worker IDs in the future says: set the clocks right;
// if it is still there, stop all nodes, delete the namespace alone, and start them.
func (m *snowflakeMode) mendNamespace(s *side) {
	if s.mending {
		return
	}
	var nodes []*claimant
	right := true
	for _, c := range m.nodes {
		if m.sides[c.side] != s {
			continue
		}
		nodes = append(nodes, c)
		if off := c.Machine.Offset(); off.Abs() >= time.Second {
			c.Machine.Step(-off)
			right = false
		}
	}
	if !right {
		return
	}
	s.mending = true
	for _, c := range nodes {
		c.Stop(func() {})
	}
	m.w.sched.After(stopped, func() {
		s.mending = false
		for _, c := range nodes {
			c.Kill() // it was started meanwhile
		}
		if !s.registry.Server.Down && s.registry.Namespace() != nil {
			m.w.sched.Note("operator", "deletes the namespace of the "+s.name+" registry")
			m.w.faults.Hit(NamespaceMended)
			m.dropNamespace(s)
		}
		for _, c := range nodes {
			c.Start()
		}
	})
}

// stopped is when a node that was told to stop has ended, or was killed.
const stopped = 31 * time.Second

// freeDead releases the numbers whose owners are down.
func (m *snowflakeMode) freeDead(s *side) {
	for _, n := range s.registry.Numbers() {
		r, _ := s.registry.Record(n)
		if owner := m.nonces[r.Nonce]; owner != nil && !owner.Up() && !r.Released && !s.registry.Server.Down {
			m.w.sched.Note("operator", "releases a number", n)
			_ = s.registry.Free(n) // it was there a moment ago
		}
	}
}
