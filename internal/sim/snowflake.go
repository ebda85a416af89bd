package sim

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"strconv"
	"time"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/internal/sim/sched"
	"github.com/leaf-idgen/leaf/internal/sim/world"
	"github.com/leaf-idgen/leaf/snowflake"
	"github.com/leaf-idgen/leaf/worker"
)

// workerFile is the name of the engine's file in the data directory.
const workerFile = "worker.json"

// snowflakeMode is snowflake mode: one namespace, whose nodes get their numbers from
// one registry or, while they move from one to another, from two with a range each.
type snowflakeMode struct {
	w     *World
	begin int64 // Unix ms of true time 0

	// The same on all nodes.
	layout      snowflake.Layout
	datacenter  int64
	policy      snowflake.Policy
	renew       time.Duration
	ahead       time.Duration
	standby     bool
	keepsOnStop bool
	asks        bool // compares clocks
	refuseAlone bool
	shares      bool // two nodes have one static number

	sides   []*side
	nodes   []*claimant // in the order of their first start
	numbers map[int64]*number
	nonces  map[string]*claimant
	allowed []allowed

	alone *side // its registry is tried, and no operator looks at its nodes; nil: none is

	troubled time.Duration // until then calls to registries may have failed
}

// side is a registry and the numbers that it hands out.
type side struct {
	name     string
	kind     worker.Kind
	registry *world.Registry // nil: the numbers are static
	numbers  leaf.Range
	single   bool // each node may have one number only, its own
	horizon  time.Duration
	wiped    map[int64]int64 // T of each number when the registry was wiped, until it has a namespace again
	gone     map[int64]int64 // the same of all wipes before: a number may have no record since
	wipedAt  time.Duration   // when that was
	inParts  bool            // see world.Registry
	wipes    int
	wrong    bool // clocks were not right then
	mending  bool // an operator has stopped the nodes to delete the namespace
	backup   *world.Backup
	moves    int // how often its nodes were moved to another cluster, whose IDs are a series of its own
}

// series is the set of IDs in which those of the side's numbers do not repeat.
func (s *side) series() Series {
	if s.moves == 0 {
		return Series{Mode: "snowflake"}
	}
	return Series{Mode: "snowflake", Tag: fmt.Sprintf("%s/%d", s.name, s.moves)}
}

// claimant is what this mode knows of a node, whatever process runs there.
type claimant struct {
	*Node

	index  int // among the claimants; a clone has its origin's
	nodeID string
	links  []*world.Link // to each side's registry
	peers  *world.Link
	side   int
	tells  time.Duration // how far the time that it tells its peers is off
	stray  bool          // configured with another layout
	until  time.Duration // when requests of a process with another layout have all arrived
	now    *holder       // of the current or last process
	ended  []*holder     // of the processes before; their late calls may still arrive
	begun  int           // sessions of all processes

	acked map[int64]int64 // by number: the T that a registry held for a claim of this node, ms
	inner map[int64]int64 // by number: the t that is durable in this node's file, ms
	files fileMemory
	stale *workerRecord // what a process read that is not the node's last file, until one writes it anew
}

func newSnowflake(w *World) mode {
	m := &snowflakeMode{
		w: w, begin: w.nodes[0].Machine.Wall().UnixMilli(),
		numbers: map[int64]*number{}, nonces: map[string]*claimant{},
	}
	rng := w.rng
	m.layout = pick(rng, snowflake.Leaf(), snowflake.Leaf(), snowflake.DC(), snowflake.JS53(), snowflake.Seconds())
	m.datacenter = rng.Int64N(1 << m.layout.DatacenterBits)
	m.policy = pick(rng, snowflake.Refuse, snowflake.UseReserved)
	m.renew = pick(rng, 3*time.Second, 5*time.Second, 7*time.Second, 10*time.Second)
	m.ahead = pick(rng, 3*time.Second, 6*time.Second, 9*time.Second, 15*time.Second, 15*time.Second, 15*time.Second)
	m.standby = rng.IntN(4) == 0
	m.keepsOnStop = rng.IntN(4) == 0
	m.asks = rng.IntN(5) < 2
	m.refuseAlone = rng.IntN(3) == 0

	first := pick(rng, 0, 1, int64(1)<<m.layout.WorkerBits-12)
	switch v := rng.IntN(10); {
	case v < 5:
		m.addSide("leased", worker.Leased, leaf.Range{Lo: first, Hi: first + 1 + rng.Int64N(5)})
		if rng.IntN(4) == 0 {
			m.addOthers(m.sides[0])
		}
	case v < 7:
		m.addSide("fixed", worker.Fixed, leaf.Range{Lo: first, Hi: first + 5})
	case v < 8:
		m.addSide("static", worker.Fixed, leaf.Range{Lo: first, Hi: first + 5})
		m.shares = rng.IntN(3) == 0
	default:
		m.addSide("fixed", worker.Fixed, leaf.Range{Lo: first, Hi: first + 5})
		m.addSide("leased", worker.Leased, leaf.Range{Lo: first + 5, Hi: first + 7 + rng.Int64N(4)})
	}
	w.sched.After(time.Minute, m.operate)
	return m
}

func pick[T any](rng *rand.Rand, from ...T) T { return from[rng.IntN(len(from))] }

// addSide makes a registry. The operator may declare it new, as the manual says, or
// let the first claimer wait.
func (m *snowflakeMode) addSide(name string, kind worker.Kind, numbers leaf.Range) {
	rng := m.w.rng
	s := &side{name: name, kind: kind, numbers: numbers}
	switch {
	case name == "static":
		s.single = true
	case kind == worker.Fixed:
		s.single = rng.IntN(2) == 0
		s.horizon = pick(rng, time.Minute, 2*time.Minute, 5*time.Minute, 10*time.Minute)
	default:
		s.horizon = pick(rng, 30*time.Second, time.Minute, time.Minute, 2*time.Minute)
		s.inParts = rng.IntN(2) == 0
	}
	if name != "static" {
		m.place(s)
		if rng.IntN(3) > 0 {
			if err := s.registry.Init(m.namespace()); err != nil {
				m.w.Failf("init of a new registry: %v", err)
			}
		}
	}
	m.sides = append(m.sides, s)
}

// place gives a side a registry, empty, at a place where none of this side was.
func (m *snowflakeMode) place(s *side) {
	info := worker.Info{Name: s.name, Kind: s.kind, Shared: true, Place: fmt.Sprintf("/%d", s.moves)}
	s.registry = world.NewRegistry(m.w.sched, &world.Server{Name: s.name}, m.w.faults, info)
	s.registry.InParts = s.inParts
	s.registry.Wrote = func(by *world.RegistryHandle, before, after worker.Record) { m.wrote(s, by, before, after) }
	s.registry.Named = func(by *world.RegistryHandle, ns worker.StoredNamespace, sent time.Duration) {
		m.named(s, by, ns, sent)
	}
}

// addOthers puts numbers of another program into a registry, as docs/MIGRATION.md has
// it for the fork's table: it ran at the first node's address, and reported its time
// now and then. Its other row belongs to a node that is not in the simulation.
func (m *snowflakeMode) addOthers(s *side) {
	m.w.faults.Hit(OthersNumbers)
	reported := m.begin - m.w.rng.Int64N(3000)
	s.registry.Others = []worker.Adoptable{
		{Number: s.numbers.Lo, Address: m.w.nodes[0].Address, Floor: reported + 10_000},
		{Number: s.numbers.Lo + 1, Address: "10.9.9.9:8080", Floor: reported},
	}
	s.numbers.Hi += 2
	last := reported + 3000 // when it was stopped
	id, err := m.layout.Encode(snowflake.Parts{Unit: (last - m.layout.Epoch) / max(1, m.layout.Unit.Milliseconds()), Worker: s.numbers.Lo, Datacenter: m.datacenter})
	if err == nil {
		err = m.w.ledger.add(s.series(), issue{leaf.Range{Lo: id, Hi: id + 100}, m.w.nodes[0], 0, m.w.sched.Elapsed()})
	}
	if err != nil {
		m.w.Failf("IDs of another program: %v", err)
	}
}

func (m *snowflakeMode) namespace() worker.Namespace {
	return worker.NewNamespace("sim", m.layout, m.datacenter)
}

// now returns the true time, Unix ms.
func (m *snowflakeMode) now() int64 { return m.begin + m.w.sched.Elapsed().Milliseconds() }

// claimant returns what is known of a node.
func (m *snowflakeMode) claimant(n *Node) *claimant {
	for _, c := range m.nodes {
		if c.Node == n {
			return c
		}
	}
	c := &claimant{Node: n, index: len(m.nodes), nodeID: n.Name, acked: map[int64]int64{}, inner: map[int64]int64{}, files: fileMemory{nonces: map[string]bool{}}}
	c.peers = &world.Link{Server: &world.Server{Name: "peers"}, Faults: m.w.faults}
	for _, s := range m.sides {
		if s.registry == nil {
			c.links = append(c.links, nil)
			continue
		}
		c.links = append(c.links, &world.Link{Server: s.registry.Server, Faults: m.w.faults})
	}
	m.nodes = append(m.nodes, c)
	switch {
	case n.ClonedFrom != nil:
		m.cloned(c, m.claimant(n.ClonedFrom))
	case m.shares && c.index == 2:
		c.index = 0
		m.w.faults.Hit(SharedNumber)
		m.allow(SharedNumber, m.mine(c, m.sides[0]).Lo, 0, math.MaxInt64)
	}
	return c
}

// open implements mode.
func (m *snowflakeMode) open(n *Node, p *sched.Process) (engine, error) {
	c := m.claimant(n)
	s := m.sides[c.side]
	e := &holder{mode: m, node: c, side: s, proc: p, life: n.Life(), began: m.w.sched.Elapsed(), unused: map[int64]int{}, floors: map[int64]int64{}}
	if c.now != nil {
		c.ended = append(c.ended, c.now)
	}
	c.now = e
	var registry worker.Registry
	numbers := m.mine(c, s)
	if s.registry != nil {
		registry = worker.NewPool(s.registry.Open(p, c.links[c.side]))
	} else {
		registry = worker.NewStatic(numbers.Lo)
	}
	layout := m.layout
	if e.stray = c.stray; e.stray {
		layout.Epoch--
	}
	cfg := worker.Config{
		Layout: layout, Datacenter: &m.datacenter, Namespace: m.namespace().Name, Address: n.Address, Numbers: numbers, NodeID: c.nodeID,
		Horizon: s.horizon, Renew: m.renew, Ahead: m.ahead, Policy: m.policy, Standby: m.standby && s.registry != nil, KeepOnStop: m.keepsOnStop,
		Alarms: &e.alarms, Nonce: func() string { return m.nonce(e) }, Runtime: p, Elapsed: e.elapsed,
	}
	if m.asks {
		cfg.Clock = worker.ClockCheck{Self: n.Address, Ask: e.ask, RefuseAlone: m.refuseAlone}
	}
	var err error
	e.Holder, err = worker.New(registry, &notedDisk{e, n.Disk.For(p)}, cfg)
	if err != nil {
		return nil, err
	}
	return e, nil
}

// mine returns the numbers that a node may have.
func (m *snowflakeMode) mine(c *claimant, s *side) leaf.Range {
	if s.single {
		own := s.numbers.Lo + int64(c.index)
		return leaf.Range{Lo: own, Hi: own + 1}
	}
	return s.numbers
}

// nonce makes the nonce of a new claim.
func (m *snowflakeMode) nonce(e *holder) string {
	if !e.looked { // the engine's first look at the clock follows
		e.looked, e.boot = true, e.proc.Offset()
	}
	e.node.begun++
	text := e.nonces() + strconv.Itoa(e.node.begun)
	m.nonces[text] = e.node
	return text
}

// refused implements mode: worker.New fails only for a wrong configuration.
func (m *snowflakeMode) refused(n *Node, err error) { m.w.Failf("%s: %v", n.Name, err) }

// crashed implements mode.
func (m *snowflakeMode) crashed(*Node) {}

// ask asks another node for its time.
func (e *holder) ask(ctx context.Context, peer worker.Peer) (time.Time, error) {
	return world.Call(ctx, e.proc, e.node.peers, "clock", world.Repeatable, func() (time.Time, error) {
		for _, c := range e.mode.nodes {
			if c.Address == peer.Clock && c.Up() && !c.Proc.Paused() {
				return c.Machine.Now().Add(c.tells), nil
			}
		}
		return time.Time{}, fmt.Errorf("%s: %w", peer.Clock, world.ErrUnreachable)
	})
}
