package sim

import (
	"strings"
	"time"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/internal/sim/sched"
	"github.com/leaf-idgen/leaf/internal/sim/world"
	"github.com/leaf-idgen/leaf/segment"
)

// segmentMode is segment mode: databases with tags, a cluster fence perhaps, an
// allocator in each process with clients around it, and an operator.
type segmentMode struct {
	w     *World
	dbs   []*world.Database
	rules []segment.TagRule
	fence *world.Fence // nil: none
	cfg   segment.Config

	fenceAway int // weight of the fault FenceAway
	tags      []*tag
	nodes     map[*Node]*segmentNode
	apps      []*application
	owners    *owners          // nil: no tag is in strict order
	periods   *periods         // nil: no numbers begin anew
	sequences *sequences       // nil: there is no sequence
	lost      []string         // identities of data directories that are lost
	stopped   map[string]bool  // tags that a regress or a repair took stock from
	floors    map[string]int64 // the numbers below which a repair said that nothing is issued, by tag
	exposures
}

// tag is a business as the operator knows it.
type tag struct {
	name   string
	db     *world.Database
	step   int64  // as it should be
	most   int64  // the largest one that the row ever had, and the largest max_step
	strict bool   // it is in strict order
	period string // in which its numbers begin anew, "" if they do not
	exists bool
}

// row is the tag's, as the operator makes it.
func (t *tag) row(maxID int64) segment.Row {
	return segment.Row{Tag: t.name, MaxID: maxID, Step: t.step, Options: t.options()}
}

// series is the tag's in the ledger.
func (t *tag) series() Series { return Series{Mode: "segment", Tag: t.name} }

// segmentNode is what outlives the processes of a node.
type segmentNode struct {
	dbs    []*world.DatabaseClient
	fence  *world.Link
	high   map[string]int64 // the largest ID of each tag that it issued
	handed map[string][]handing
	owes   bool           // the cluster fence lost something, and the node has not merged its fences since
	alone  bool           // it took ranges without the cluster fence, and has not merged them
	engine *segmentEngine // of the process that runs, nil if there is none
	before *segmentEngine // of the last process that had one
}

func newSegment(w *World, only string, start time.Time) mode {
	m := &segmentMode{w: w, nodes: map[*Node]*segmentNode{}, stopped: map[string]bool{}, floors: map[string]int64{}}
	m.exposures = exposures{mode: m, exposed: map[string][]exposure{}, regress: map[string]bool{}, alone: map[string]int64{}}
	rng := w.rng
	names := []string{"main"}
	if rng.IntN(3) == 0 {
		names = append(names, "second")
		if rng.IntN(2) == 0 {
			m.rules = []segment.TagRule{{Pattern: "order*", Store: "second"}}
		}
	}
	for _, name := range names {
		d := world.NewDatabase(w.sched, name, w.faults)
		d.Start = start
		d.Changed = func(k world.Kind) { m.expose(k, d) }
		m.dbs = append(m.dbs, d)
	}
	if r := m.router(nil); r.Fingerprint() != "" {
		for i, d := range m.dbs {
			d.RecordRule(r.Binding(i))
		}
	}
	switch rng.IntN(5) {
	case 0, 1:
	case 2:
		m.cfg.Degrade = true
		fallthrough
	default:
		m.makeFence()
	}
	if m.cfg.Degrade {
		m.fenceAway = 4
	}
	if rng.IntN(6) == 0 { // what is seldom in such runs shall be often in some
		if m.cfg.Degrade, m.fenceAway = true, 30; m.fence == nil {
			m.makeFence()
		}
	}
	m.cfg.FixedStep = rng.IntN(3) == 0
	m.cfg.MaxStep = []int64{2_000, 1_000_000}[rng.IntN(2)]
	m.cfg.KeepUnused = rng.IntN(4) == 0
	steps := []int64{1, 3, 7, 10, 30, 60, 100, 1000}
	rng.Shuffle(len(steps), func(i, j int) { steps[i], steps[j] = steps[j], steps[i] })
	steps[0] = max(steps[0], 100) // a run without long ranges issues little
	tags := []string{"order", "user", "order/item", "Pay"}
	if only == "order" {
		m.owners = newOwners(m, 2*time.Second, 10*time.Second, 30*time.Second)
	}
	if only == "sequence" {
		m.owners, m.sequences = newOwners(m, 10*time.Second, 30*time.Second), newSequences(m)
		copy(tags, m.sequences.rows)
	}
	if only == "period" {
		if m.periods = newPeriods(m, start); rng.IntN(4) == 0 {
			m.owners = newOwners(m, 2*time.Second, 10*time.Second, 30*time.Second)
		}
	}
	for i, name := range tags[:2+rng.IntN(3)] {
		m.create(name, steps[i])
	}
	for _, d := range m.dbs {
		d.Settled()
	}
	w.ledger.allowed = append(w.ledger.allowed, m.allowed()...)
	w.sched.World().Go(m.operate)
	if rng.IntN(2) == 0 {
		a := newApplication(m, "app")
		m.apps = append(m.apps, a)
		w.sched.After(w.upTo(time.Minute), a.start)
		w.sched.After(Storm/2+w.upTo(Storm/4), func() {
			if !a.proc.Dead() {
				a.close()
			}
		})
	}
	return m
}

func (m *segmentMode) makeFence() {
	m.fence = world.NewFence(m.w.sched, m.w.faults)
	m.fence.Changed = func(k world.Kind) {
		for _, s := range m.nodes {
			s.owes = true
		}
		m.expose(k, nil)
	}
}

// create inserts the row of a new tag.
func (m *segmentMode) create(name string, step int64) {
	t := &tag{name: name, step: step, most: step, strict: m.owners != nil && len(m.tags) < 2, exists: true, db: m.dbs[m.router(nil).Route(name)]}
	if m.periods != nil {
		t.period = m.periods.unit()
	}
	m.tags = append(m.tags, t)
	t.db.Put(world.RowCreated, t.row(1), false)
}

// router returns the division of tags, over the stores of a process or, for looking up
// only, over none.
func (m *segmentMode) router(stores []segment.NamedStore) *segment.Router {
	if stores == nil {
		for _, d := range m.dbs {
			stores = append(stores, segment.NamedStore{Name: d.Name})
		}
	}
	r, err := segment.NewRouter(stores, m.rules)
	if err != nil {
		panic(err) // the names and rules of newSegment are right
	}
	return r
}

// node returns the node's lasting part.
func (m *segmentMode) node(n *Node) *segmentNode {
	if m.nodes[n] == nil {
		s := &segmentNode{high: map[string]int64{}, handed: map[string][]handing{}}
		for _, d := range m.dbs {
			s.dbs = append(s.dbs, d.Client())
		}
		if m.fence != nil {
			s.fence = &world.Link{Server: m.fence.Server, Faults: m.w.faults}
			s.owes = m.fence.Losses() > 0
		}
		m.nodes[n] = s
	}
	return m.nodes[n]
}

// open implements mode.
func (m *segmentMode) open(n *Node, p *sched.Process) (engine, error) {
	s := m.node(n)
	e := &segmentEngine{mode: m, node: n, state: s, proc: p, latched: map[string]time.Duration{}, active: map[[2]string]leaf.Alarm{}, since: map[[2]string]time.Duration{}, taken: map[string][]*delivery{}, top: map[string]int64{}, twice: map[string]bool{}, failedN: map[string]int64{}, known: map[string]int64{}, version: map[string]int64{}, missed: map[string]int64{}, told: map[string]period{}, mayTake: map[string]int64{}, members: map[*world.Database]segment.Member{}}
	var stores []segment.NamedStore
	for i, c := range s.dbs {
		store := c.For(p)
		store.Delivered, store.Read = e.delivered, e.read
		store.Entered = func(member segment.Member) { e.members[m.dbs[i]] = member }
		stores = append(stores, segment.NamedStore{Name: m.dbs[i].Name, Store: store})
	}
	var err error
	cfg := m.cfg
	cfg.Runtime, cfg.Alarms = p, e
	cfg.NodeID = n.Disk.Identity
	if m.owners != nil {
		if e.slots, err = m.owners.open(n, p); err != nil {
			return nil, err
		}
		cfg.Terms = e.slots
	}
	if m.fence != nil {
		c := m.fence.For(s.fence, p)
		c.Creates, c.Seen, c.Moved = e.creates, e.saw, e.moved
		c.Opened = func(losses int) { e.opened = losses }
		cfg.ClusterFence = c
	}
	if e.alloc, err = segment.New(m.router(stores), n.Disk.For(p), cfg); err != nil {
		return nil, err
	}
	if m.sequences != nil {
		if e.entities, err = m.sequences.open(e); err != nil {
			return nil, err
		}
	}
	e.latchesLast(s.before)
	s.engine = e
	return e, nil
}

// refused implements mode: a supervisor starts the process again, and an operator
// does what the error of a fence file that the node does not take says.
func (m *segmentMode) refused(n *Node, err error) {
	damaged := strings.Contains(err.Error(), "run: leaf fence rebuild")
	life := n.Life()
	m.w.sched.After(time.Second+m.w.upTo(time.Minute), func() {
		switch {
		case n.Life() != life:
		case damaged:
			m.rebuildFence(n)
		default:
			n.Kill()
			n.Start()
		}
	})
}

// crashed implements mode.
func (m *segmentMode) crashed(n *Node) {
	s := m.node(n)
	if s.engine != nil {
		s.engine.ended = n.Proc.Died() - n.Proc.Stood()
		s.before, s.engine = s.engine, nil
	}
}

// running returns the nodes with an allocator that runs.
func (m *segmentMode) running() []*segmentEngine {
	var all []*segmentEngine
	for _, n := range m.w.nodes {
		if e := m.node(n).engine; e != nil && !e.proc.Dead() {
			all = append(all, e)
		}
	}
	return all
}

// batch returns how many IDs of the tag a client may want at once: those of a range or
// two, for one that wants a hundred ranges in a call keeps the servers busy with little
// else.
func (m *segmentMode) batch(t *tag, ranges, most int64) int {
	step := t.step
	if row, ok := t.db.Row(t.name); ok && row.Step > 0 {
		step = row.Step
	}
	return int(min(ranges*step, most))
}
