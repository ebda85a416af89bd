package sched

import "fmt"

// Strict makes a wake-up that the scheduler has missed a panic, for tests: a goroutine
// whose wait was ended by one of another process, which no callback of After stands
// between. It takes half as long again.
func (s *Scheduler) Strict() { s.strict = true }

// poll looks for waits that have ended by what a goroutine of p, or a callback on its
// behalf, did. That is other waits of p, or of the world, which waits for processes;
// processes do not wait for one another but by timers.
func (s *Scheduler) poll(p *Process) {
	p.poll()
	if p != s.world {
		s.world.poll()
	}
}

// pollAll is poll after a callback that may concern any process.
func (s *Scheduler) pollAll() {
	for _, m := range s.machines {
		for _, p := range m.lives {
			p.poll()
		}
	}
}

// missed panics if a wait has ended that no poll has seen.
func (s *Scheduler) missed() {
	before := len(s.ready)
	if s.pollAll(); len(s.ready) > before {
		panic(fmt.Sprintf("sched: the scheduler did not notice at %v that the wait of %s has ended", s.now, s.ready[before]))
	}
}

// poll makes every task of the process ready whose wait has ended, in the order in
// which they began to wait. Mostly there is none.
func (p *Process) poll() {
	kept := 0
	var open channels
	for i, t := range p.waiting {
		switch {
		case t.due || p.dead || open.anyClosed(t.wake, t.done):
			p.s.ready = append(p.s.ready, t)
		case kept < i:
			p.waiting[kept] = t
			kept++
		default:
			kept++
		}
	}
	clear(p.waiting[kept:])
	p.waiting = p.waiting[:kept]
}

// channels remembers two that are open: many goroutines of a process wait for its end.
type channels struct{ wake, done <-chan struct{} }

// anyClosed reports whether one of the two is closed; nil is not.
func (c *channels) anyClosed(wake, done <-chan struct{}) bool {
	if wake != c.wake {
		if isDone(wake) {
			return true
		}
		c.wake = wake
	}
	if done != c.done {
		if isDone(done) {
			return true
		}
		c.done = done
	}
	return false
}

func isDone(c <-chan struct{}) bool {
	if c == nil {
		return false
	}
	select {
	case <-c:
		return true
	default:
		return false
	}
}
