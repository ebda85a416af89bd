package sched

import (
	"container/heap"
	"context"
	"fmt"
	"iter"
	"math/rand/v2"
	"slices"
	"time"
)

// maxSteps is how many steps may be done at one moment. An honest simulation needs a
// few thousand.
const maxSteps = 1_000_000

// Scheduler runs one simulation. Use New. Its methods are for the goroutine that calls
// Run and, while that runs, for the simulated goroutines and the callbacks of After.
type Scheduler struct {
	rng     *rand.Rand
	now     time.Duration // true time since the beginning
	world   *Process
	ready   []*task
	waiting []*task // by the order in which they began to wait
	timers  timers
	seq     int64 // of timers and tasks
	running *task // nil in callbacks of After
	last    *task
	ended   bool // every task is to unwind
	trace
}

// New returns a scheduler at true time 0.
func New(seed uint64) *Scheduler {
	s := &Scheduler{rng: rand.New(rand.NewPCG(seed, 0x1eaf))}
	s.world = s.NewMachine("world", time.Unix(0, 0)).Boot()
	return s
}

// Rand returns the source of all chance in the simulation.
func (s *Scheduler) Rand() *rand.Rand { return s.rng }

// Elapsed returns the true time since the beginning.
func (s *Scheduler) Elapsed() time.Duration { return s.now }

// World returns the process of whatever is no node: clients elsewhere, the nemesis.
// It has a perfect clock and cannot be killed.
func (s *Scheduler) World() *Process { return s.world }

// After calls f at true time now+d, on no task: f must not wait.
func (s *Scheduler) After(d time.Duration, f func()) { s.addTimer(d, nil, f) }

func (s *Scheduler) addTimer(d time.Duration, of *Machine, f func()) *timer {
	s.seq++
	t := &timer{at: s.now + max(d, 0), seq: s.seq, of: of, fire: f}
	heap.Push(&s.timers, t)
	return t
}

// Run runs the simulation until true time until. It may be called again. It panics
// with what a simulated goroutine panicked with.
func (s *Scheduler) Run(until time.Duration) {
	steps := 0
	for {
		for len(s.ready) > 0 {
			if steps++; steps > maxSteps {
				panic(fmt.Sprintf("sched: %d steps at %v: a livelock; %s was the last to run", steps, s.now, s.last))
			}
			i := s.rng.IntN(len(s.ready))
			t := s.ready[i]
			last := len(s.ready) - 1
			s.ready[i], s.ready[last] = s.ready[last], nil
			s.ready = s.ready[:last]
			s.step(t)
		}
		if len(s.timers) == 0 || s.timers[0].at > until {
			s.now = max(s.now, until)
			return
		}
		t := heap.Pop(&s.timers).(*timer) //nolint:forcetypeassert // holds nothing else
		if t.fire == nil {
			continue // stopped
		}
		if t.at > s.now {
			s.now, steps = t.at, 0
		}
		f := t.fire
		t.fire = nil
		f()
		s.poll()
	}
}

// step runs one task to its next scheduling point.
func (s *Scheduler) step(t *task) {
	if t.proc.paused && !t.proc.dead && !s.ended {
		t.proc.held = append(t.proc.held, t)
		return
	}
	s.mix(uint64(t.id), uint64(s.now))
	s.running, s.last = t, t
	_, more := t.next()
	s.running = nil
	if more && t.ready {
		s.ready = append(s.ready, t)
	} else if more {
		s.waiting = append(s.waiting, t)
	}
	s.poll()
}

// poll makes every task ready whose wait has ended.
func (s *Scheduler) poll() {
	s.waiting = slices.DeleteFunc(s.waiting, func(t *task) bool {
		if !t.awake() {
			return false
		}
		s.ready = append(s.ready, t)
		return true
	})
}

// End unwinds every goroutine of every process, dead or alive. The simulation is over:
// no other method may follow but Hash.
func (s *Scheduler) End() {
	s.ended = true
	for {
		left := slices.Concat(s.ready, s.waiting)
		s.ready, s.waiting = nil, nil
		for _, m := range s.machines {
			for _, p := range m.lives {
				left = append(left, p.held...)
				p.held = nil
			}
		}
		if len(left) == 0 {
			return
		}
		for _, t := range left {
			s.running = t
			if _, more := t.next(); more {
				panic(fmt.Sprintf("sched: %s goes on after its end", t))
			}
			s.running = nil
		}
	}
}

// task is one simulated goroutine: a coroutine that is switched to for each step.
type task struct {
	id    int64
	proc  *Process
	next  func() (struct{}, bool)
	yield func(struct{}) bool

	// While it waits:
	ready bool // it gave way without waiting for anything
	wake  <-chan struct{}
	ctx   context.Context //nolint:containedctx // of the Wait that it is in
	due   bool            // its time has passed
}

func (t *task) String() string { return fmt.Sprintf("goroutine %d of %s", t.id, t.proc.Name()) }

// killed is what a goroutine of a dead process panics with.
type killed struct{}

func (s *Scheduler) start(p *Process, f func()) {
	s.seq++
	t := &task{id: s.seq, proc: p}
	t.next, _ = iter.Pull(iter.Seq[struct{}](func(yield func(struct{}) bool) {
		t.yield = yield
		defer func() {
			if r := recover(); r != nil && r != any(killed{}) {
				panic(r)
			}
		}()
		if !p.dead && !s.ended {
			f()
		}
	}))
	s.ready = append(s.ready, t)
}

// giveWay ends the step of the running task, which must belong to p.
func (s *Scheduler) giveWay(p *Process) {
	t := s.running
	if p.dead || s.ended {
		panic(killed{})
	}
	t.yield(struct{}{})
	if p.dead || s.ended {
		panic(killed{})
	}
}

// awake reports whether the wait has ended.
func (t *task) awake() bool {
	return t.due || t.proc.dead || isDone(t.wake) || t.ctx != nil && t.ctx.Err() != nil
}

func isDone(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// timer calls fire at a moment of the true time.
type timer struct {
	at    time.Duration
	seq   int64
	of    *Machine // whose clock it follows; nil: the true time
	fire  func()   // nil: stopped or fired
	index int
}

type timers []*timer

func (h timers) Len() int { return len(h) }

func (h timers) Less(i, j int) bool {
	return h[i].at < h[j].at || h[i].at == h[j].at && h[i].seq < h[j].seq
}

func (h timers) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].index, h[j].index = i, j
}

func (h *timers) Push(x any) {
	t := x.(*timer) //nolint:forcetypeassert // holds nothing else
	t.index = len(*h)
	*h = append(*h, t)
}

func (h *timers) Pop() any {
	old := *h
	last := len(old) - 1
	t := old[last]
	old[last] = nil
	*h = old[:last]
	return t
}
