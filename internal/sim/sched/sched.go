package sched

import (
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
	timers  timers
	seq     int64 // of timers and tasks
	running *task // nil in callbacks of After
	idle    []*coroutine
	steps   int64
	burst   int // steps at this moment
	last    *task
	ended   bool // every task is to unwind
	strict  bool
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

// Steps returns how many steps of goroutines there were so far.
func (s *Scheduler) Steps() int64 { return s.steps }

// Elapsed returns the true time since the beginning.
func (s *Scheduler) Elapsed() time.Duration { return s.now }

// World returns the process of whatever is no node: clients elsewhere, the nemesis.
// It has a perfect clock and cannot be killed.
func (s *Scheduler) World() *Process { return s.world }

// Run runs the simulation until true time until. It may be called again. It panics
// with what a simulated goroutine panicked with.
func (s *Scheduler) Run(until time.Duration) {
	s.burst = 0
	for {
		for len(s.ready) > 0 {
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
		if s.strict {
			s.missed()
		}
		at, t := s.timers.pop()
		if t.over {
			continue // stopped
		}
		if at > s.now {
			s.now, s.burst = at, 0
		}
		s.fire(t)
	}
}

// step runs one task to its next scheduling point.
func (s *Scheduler) step(t *task) {
	if t.proc.paused && !t.proc.dead && !s.ended {
		t.proc.held = append(t.proc.held, t)
		return
	}
	s.begins(t)
	t.on.next()
	s.running = nil
	switch {
	case t.over:
		s.idle = append(s.idle, t.on)
	case t.ready:
		s.ready = append(s.ready, t)
	default:
		t.proc.waiting = append(t.proc.waiting, t)
	}
	s.poll(t.proc)
}

// begins counts a step of a task.
func (s *Scheduler) begins(t *task) {
	if s.burst++; s.burst > maxSteps {
		panic(fmt.Sprintf("sched: %d steps at %v: a livelock; %s was the last to run", s.burst, s.now, s.last))
	}
	s.mix(uint64(t.id), uint64(s.now))
	s.steps++
	s.running, s.last = t, t
}

// alone reports whether a task that gives way now would be the next one to run, and
// makes that step begin: most of the time nothing else can run, and changing from
// goroutine to goroutine and back is what a step costs.
func (s *Scheduler) alone(t *task) bool {
	s.poll(t.proc)
	if len(s.ready) > 0 || t.proc.paused || t.proc.dead || s.ended {
		return false
	}
	s.begins(t)
	return true
}

// End unwinds every goroutine of every process, dead or alive. The simulation is over:
// no other method may follow but Hash.
func (s *Scheduler) End() {
	s.ended = true
	for {
		left := s.ready
		s.ready = nil
		for _, m := range s.machines {
			for _, p := range m.lives {
				left = slices.Concat(left, p.waiting, p.held)
				p.waiting, p.held = nil, nil
			}
		}
		if len(left) == 0 {
			break
		}
		for _, t := range left {
			s.running = t
			if t.on.next(); !t.over {
				panic(fmt.Sprintf("sched: %s goes on after its end", t))
			}
			s.running = nil
			s.idle = append(s.idle, t.on)
		}
	}
	for _, c := range s.idle {
		c.end()
	}
	s.idle = nil
}

// task is one simulated goroutine.
type task struct {
	id   int64
	proc *Process
	f    func()
	on   *coroutine
	over bool // f has returned

	// While it waits:
	ready bool // it gave way without waiting for anything
	wake  <-chan struct{}
	done  <-chan struct{} // of the context of the Wait that it is in
	due   bool            // its time has passed
}

func (t *task) String() string { return fmt.Sprintf("goroutine %d of %s", t.id, t.proc.Name()) }

// killed is what a goroutine of a dead process panics with.
type killed struct{}

func (s *Scheduler) start(p *Process, f func()) {
	s.seq++
	t := &task{id: s.seq, proc: p, f: f}
	if last := len(s.idle) - 1; last >= 0 {
		t.on, s.idle = s.idle[last], s.idle[:last]
	} else {
		t.on = newCoroutine()
	}
	t.on.task = t
	s.ready = append(s.ready, t)
}

// coroutine is what tasks run on, one after the other: a new one would begin with a
// small stack and spend a fifth of the simulation's time on making it larger.
type coroutine struct {
	task  *task
	next  func() (struct{}, bool) // runs the task to its next scheduling point
	end   func()                  // for an idle one
	yield func(struct{}) bool
}

func newCoroutine() *coroutine {
	c := &coroutine{}
	c.next, c.end = iter.Pull(iter.Seq[struct{}](func(yield func(struct{}) bool) {
		c.yield = yield
		for more := true; more; more = yield(struct{}{}) {
			c.task.run()
			c.task.over, c.task = true, nil
		}
	}))
	return c
}

func (t *task) run() {
	defer func() {
		if r := recover(); r != nil && r != any(killed{}) {
			panic(r)
		}
	}()
	if p := t.proc; !p.dead && !p.s.ended {
		t.f()
	}
}

// giveWay ends the step of the running task, which must belong to p.
func (s *Scheduler) giveWay(p *Process) {
	t := s.running
	if p.dead || s.ended {
		panic(killed{})
	}
	t.on.yield(struct{}{})
	if p.dead || s.ended {
		panic(killed{})
	}
}
