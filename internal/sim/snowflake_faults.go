package sim

import (
	"time"

	"github.com/leaf-idgen/leaf/internal/sim/world"
	"github.com/leaf-idgen/leaf/worker"
)

// The kinds of faults of snowflake mode. Those of registries are in package world.
const (
	RegistryDown     world.Kind = "registry down"
	RegistryCut      world.Kind = "a node cut off from its registry"
	RegistryWeather  world.Kind = "calls to a registry lost, late and doubled"
	RegistryUnsure   world.Kind = "a registry that is unsure of its commits"
	YearAhead        world.Kind = "clock steps ahead by a year"
	WrongStart       world.Kind = "restart with a wrong clock"
	NamespaceMended  world.Kind = "namespace of a far future deleted by an operator"
	TwoAddresses     world.Kind = "two nodes with one address"
	RegistryMoved    world.Kind = "node moves between fixed and leased registry"
	RegistryReplaced world.Kind = "nodes moved to another cluster, whose registry does not answer"
	OtherLayout      world.Kind = "node started with another layout"
	OthersNumbers    world.Kind = "numbers of another program in the registry"
)

// Kinds of plans, which the world may prevent: what took effect is counted apart.
const (
	movePlanned  world.Kind = "move between registries planned"
	sessionsLate world.Kind = "a registry whose sessions expire late"
)

// clocksRight is how far clocks are off that are about right.
const clocksRight = 4 * time.Second

const year = 365 * 24 * time.Hour

// faults implements mode.
func (m *snowflakeMode) faults() []fault {
	w := m.w
	all := []fault{
		{world.FileOlder, 3, m.fileOlder},
		{YearAhead, 2, w.onUp(func(n *Node) { n.Machine.Step(year) })},
		{WrongStart, 4, w.onUp(func(n *Node) {
			n.Kill()
			by := w.step()
			switch w.rng.IntN(10) {
			case 0:
				by = year
			case 1, 2, 3, 4:
				by = -by
			}
			n.Machine.Step(by)
			w.restartLater(n)
		})},
		{TwoAddresses, 2, w.onUpOK(func(n *Node) bool {
			address := w.nodes[w.rng.IntN(len(w.nodes))].Address
			if address == n.Address {
				return false
			}
			n.Kill()
			n.Address = address
			w.restartLater(n)
			return true
		})},
	}
	if m.sides[0].registry == nil {
		return all
	}
	all = append(all, fault{OtherLayout, 2, m.strayed})
	if m.sides[0].kind == worker.Fixed { // a leased number is never taken from the node's file
		all = append(all, fault{RegistryReplaced, 3, func() bool { return m.replace(m.sides[0]) }})
	}
	if len(m.sides) > 1 {
		all = append(all, fault{movePlanned, 12, w.onUp(func(n *Node) {
			move := func() {
				if c := m.claimant(n); !n.Up() && !c.stray { // with another layout it could be the first one in the other registry
					c.side = 1 - c.side
					w.took(RegistryMoved)
				}
				w.restartLater(n)
			}
			if w.rng.IntN(2) == 0 {
				n.Stop(func() { w.sched.After(time.Millisecond, move) })
				return
			}
			n.Kill()
			move()
		})})
	}
	return append(all, m.registryFaults()...)
}

// fileOlder takes a node's file back by seconds, to what its owner may not have
// surpassed at the registry; at times it cannot ask there.
func (m *snowflakeMode) fileOlder() bool {
	c := m.claimant(m.w.nodes[m.w.rng.IntN(len(m.w.nodes))])
	if !c.Up() || c.Disk.Content(workerFile) == nil {
		return false
	}
	if l := c.links[c.side]; l != nil && m.w.rng.IntN(2) == 0 {
		l.Cut(true)
		m.w.sched.After(m.trouble(3*time.Minute), func() { fair(l) })
	}
	m.rush()
	after := m.w.upTo(time.Minute)
	m.w.sched.After(after, func() {
		c.Kill()
		c.Forgot = c.Disk.RollBack(workerFile, max(0, m.w.sched.Elapsed()-m.w.upTo(20*time.Second))) || c.Forgot
		m.w.sched.After(m.w.upTo(2*time.Second), c.Start)
	})
	return true
}

// scatter is what a failover may do besides: some nodes cannot reach the new server,
// others start anew.
func (m *snowflakeMode) scatter() {
	for _, c := range m.nodes {
		switch l := c.links[c.side]; m.w.rng.IntN(4) {
		case 0:
			l.Cut(true)
			m.w.sched.After(m.trouble(3*time.Minute), func() { fair(l) })
		case 1:
			if c.Up() {
				c.Kill()
				m.w.restartLater(c.Node)
			}
		}
	}
}

// strayed starts a node for a while with another layout, which a registry that knows
// one refuses.
func (m *snowflakeMode) strayed() bool {
	if len(m.nodes) == 0 {
		return false
	}
	c := m.nodes[m.w.rng.IntN(len(m.nodes))]
	if s := m.sides[c.side]; !c.Up() || c.stray || s.registry.Namespace() == nil {
		return false
	}
	c.Kill()
	c.stray = true
	c.Start()
	m.w.sched.After(m.w.upTo(30*time.Second), func() {
		c.until = m.w.sched.Elapsed() + 3*time.Minute // a late request takes 2 min at most
		if c.stray = false; c.now.stray {
			c.Kill()
			m.w.restartLater(c.Node)
		}
	})
	return true
}
