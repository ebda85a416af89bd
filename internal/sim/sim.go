package sim

import (
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/leaf-idgen/leaf/internal/sim/sched"
	"github.com/leaf-idgen/leaf/internal/sim/world"
)

// Lengths of a run, in simulated time.
const (
	Storm = 50 * time.Minute
	Calm  = 10 * time.Minute
)

// Options of Run.
type Options struct {
	Log  io.Writer // a line per event; nil: none
	Only string    // "segment", "snowflake", "order", "period" or "sequence"; "": as the seed says, never one of the last three

	// Strict makes the scheduler check itself (sched.Scheduler.Strict).
	Strict bool
}

// Result is what one run showed.
type Result struct {
	Seed    uint64
	Hash    uint64 // of the whole order of events
	Nodes   int
	IDs     int64
	Steps   int64                // of goroutines
	Struck  int                  // faults that the nemesis began, without plans that came to nothing
	Faults  map[world.Kind]int   // that took effect, by kind
	Allowed map[world.Kind]int64 // IDs that repeated by an undetectable fault; 0 for one that did not occur
	Barren  bool                 // at the end, clocks that were ahead had put every number out of reach
	Took    time.Duration        // real time
	Err     error                // nil if every invariant held
}

// errFailed marks what Failf panics with.
var errFailed = errors.New("invariant broken")

// World is one simulation. Its fields are for the modes and faults of this package.
type World struct {
	sched  *sched.Scheduler
	rng    *rand.Rand
	faults *world.Faults
	ledger *ledger
	nodes  []*Node
	modes  []mode
	starts []time.Duration // of all nodes
	calm   bool            // faults are over
	struck int             // faults that the nemesis began
}

// mode is one mode of the product in the simulation: its servers, the engines of all
// nodes, its clients, faults and invariants.
type mode interface {
	// open makes the engine of a new process, in a goroutine of it.
	open(n *Node, p *sched.Process) (engine, error)

	// refused is told that open failed, crashed that the node's process was killed.
	refused(n *Node, err error)
	crashed(n *Node)

	// faults returns what the nemesis may do to this mode.
	faults() []fault

	// links returns the node's ways to all servers of the mode.
	links(n *Node) []*world.Link

	// heal ends all faults of this mode at the beginning of the calm, and does what an
	// operator who read the alarms would do.
	heal()

	// more asks every node for IDs of every tag, in the calm.
	more()

	// barren reports whether no node can issue, in the calm, and none is to blame.
	barren() bool

	// settled checks at the end of the calm that everything works again, and the
	// invariants that need the whole run. It runs on a goroutine of the world.
	settled() error
}

// fault is one thing that the nemesis can do.
type fault struct {
	kind   world.Kind
	weight int
	strike func() bool // begins it, and arranges its end; false: not possible now
}

// Run runs one seed.
func Run(seed uint64, opts Options) (r Result) {
	begin := time.Now()
	s := sched.New(seed)
	s.Log(opts.Log)
	if opts.Strict {
		s.Strict()
	}
	w := &World{sched: s, rng: s.Rand(), faults: &world.Faults{}, ledger: newLedger()}
	r.Seed = seed
	defer func() {
		if p := recover(); p != nil {
			err, ok := p.(error)
			if !ok || !errors.Is(err, errFailed) {
				panic(p) // a defect of an engine or of the simulation: with its stack
			}
			r.Err = fmt.Errorf("seed %d, at %v: %w", seed, s.Elapsed(), err)
		}
		r.Struck, r.Barren = w.struck, r.Err == nil && w.barren()
		r.Hash, r.Nodes, r.IDs, r.Allowed = s.Hash(), len(w.nodes), w.ledger.count, w.ledger.repeats
		r.Steps = s.Steps()
		for _, e := range w.ledger.allowed {
			r.Allowed[e.Kind] += 0
		}
		r.Faults = map[world.Kind]int{}
		for _, k := range w.faults.Kinds() {
			r.Faults[k] = w.faults.Count(k)
		}
		r.Took = time.Since(begin)
		s.End()
	}()
	w.build(opts.Only)
	w.panics(rand.New(rand.NewPCG(seed, 0xd21e)))
	w.storm()
	w.settle()
	if err := w.ledger.secondOpinion(); err != nil {
		w.Failf("%w", err)
	}
	return r
}

// Failf ends the run: an invariant is broken.
func (w *World) Failf(format string, args ...any) {
	panic(fmt.Errorf("%w: %w", errFailed, fmt.Errorf(format, args...)))
}

// build draws the modes and nodes.
func (w *World) build(only string) {
	segment, snowflake := only != "" && only != "snowflake", only == "snowflake"
	if only == "" {
		switch w.rng.IntN(8) {
		case 0:
			segment, snowflake = true, true
		case 1, 2, 3:
			segment = true
		default:
			snowflake = true
		}
	}
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC).Add(time.Duration(w.rng.Int64N(int64(1000 * time.Hour))))
	if only == "period" {
		start = newYear(w)
	}
	for i := range 3 + w.rng.IntN(2) {
		m := w.sched.NewMachine(fmt.Sprintf("node-%d", i), start.Add(time.Duration(w.rng.IntN(4001)-2000)*time.Millisecond))
		m.Drift(int64(w.rng.IntN(401) - 200))
		disk := world.NewDisk(w.sched, w.faults)
		disk.Identity = m.Name()
		w.nodes = append(w.nodes, &Node{Name: m.Name(), World: w, Machine: m, Address: fmt.Sprintf("10.0.0.%d:8080", i+1), Disk: disk})
	}
	if segment {
		w.modes = append(w.modes, newSegment(w, only, start))
	}
	if snowflake {
		w.modes = append(w.modes, newSnowflake(w))
	}
	for _, n := range w.nodes {
		w.sched.After(time.Duration(w.rng.Int64N(int64(10*time.Second))), n.Start)
	}
}

// planned are the kinds of plans that the world may prevent. They are no faults: what
// comes of one is a kind of its own.
var planned = map[world.Kind]bool{crashPlanned: true, powerCutPlanned: true, wipePlanned: true, movePlanned: true, sessionsLate: true}

// took counts a fault that the nemesis planned, at the moment of its effect.
func (w *World) took(k world.Kind) {
	w.faults.Hit(k)
	w.struck++
}

// storm runs the time of faults.
func (w *World) storm() {
	all := append(w.nodeFaults(), w.diskFaults()...)
	for _, m := range w.modes {
		all = append(all, m.faults()...)
	}
	total := 0
	for _, f := range all {
		total += f.weight
	}
	strike := func() {
		for range 20 { // until one is possible
			pick := w.rng.IntN(total)
			for _, f := range all {
				if pick -= f.weight; pick >= 0 {
					continue
				}
				if f.strike() {
					w.sched.Note("nemesis", string(f.kind))
					if w.faults.Hit(f.kind); !planned[f.kind] {
						w.struck++
					}
					return
				}
				break
			}
		}
	}
	for range 12 + w.rng.IntN(20) {
		w.sched.After(time.Duration(w.rng.Int64N(int64(Storm))), strike)
	}
	w.sched.After(Storm-6*time.Minute, func() {
		for range LeastFaults - w.struck { // many plans came to nothing
			w.sched.After(w.upTo(5*time.Minute), strike)
		}
	})
	w.sched.After(Storm-10*time.Second, func() {
		for range 100 {
			if w.struck >= LeastFaults {
				return
			}
			strike()
		}
	})
	w.sched.Run(Storm)
}

// settle ends all faults and checks that the world recovers.
func (w *World) settle() {
	w.sched.Note("nemesis", "calm")
	w.calm = true
	for _, m := range w.modes {
		m.heal()
	}
	for _, n := range w.nodes {
		soundDisk(n.Disk)
		n.Machine.Thaw()
		n.Machine.Drift(0)
		n.Machine.Step(-n.Machine.Offset())
		n.Start()
	}
	w.sched.Run(Storm + Calm)
	var checked bool
	w.sched.World().Go(func() {
		for _, m := range w.modes {
			if err := m.settled(); err != nil {
				w.Failf("after the calm: %v", err)
			}
		}
		w.fill()
		checked = true
	})
	limit := time.Duration(len(w.modes)) * time.Hour // one mode after the other
	for end := w.sched.Elapsed() + limit; !checked && w.sched.Elapsed() < end; {
		w.sched.Run(w.sched.Elapsed() + time.Second)
	}
	if !checked {
		w.Failf("the last checks did not end within %v: something waits for ever", limit)
	}
}

// barren reports whether no node can issue in any mode.
func (w *World) barren() bool {
	return !slices.ContainsFunc(w.modes, func(m mode) bool { return !m.barren() })
}

// fill asks for IDs until a run whose faults kept its clients from that has many.
func (w *World) fill() {
	for range 1000 {
		if w.ledger.count >= LeastIDs || w.barren() {
			return
		}
		for _, m := range w.modes {
			m.more()
		}
		w.sched.World().Sleep(500 * time.Millisecond)
	}
}
