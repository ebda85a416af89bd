package sched

import (
	"context"
	"slices"
	"time"

	"github.com/leaf-idgen/leaf"
)

var _ leaf.Runtime = (*Process)(nil)

// Process is one life of a program on a machine.
type Process struct {
	*Machine

	life    int
	dead    bool
	paused  bool
	until   time.Duration // paused until, at least
	died    time.Duration
	since   time.Duration // paused since
	stood   time.Duration // was paused for, before that
	waiting []*task       // by the order in which they began to wait
	held    []*task       // ready, but the process is paused
	killAt  int           // Boundary calls until it dies; 0: none
	atIO    bool          // it died at the boundary of killAt
}

// Boot starts a process, which does nothing until Go is called.
func (m *Machine) Boot() *Process {
	m.boots++
	p := &Process{Machine: m, life: m.boots}
	m.lives = append(m.lives, p)
	return p
}

// Scheduler returns the scheduler.
func (p *Process) Scheduler() *Scheduler { return p.s }

// Dead reports whether the process was killed.
func (p *Process) Dead() bool { return p.dead }

// Died returns the true time at which the process was killed, 0 if it was not.
func (p *Process) Died() time.Duration { return p.died }

// Paused reports whether the process is paused.
func (p *Process) Paused() bool { return p.paused }

// Stood returns for how long of the true time the process was paused, or its machine
// suspended, so far.
func (p *Process) Stood() time.Duration {
	if p.paused {
		return p.stood + p.s.now - p.since
	}
	return p.stood
}

// Life returns 1 for the machine's first process, 2 for the second one.
func (p *Process) Life() int { return p.life }

// Kill ends the process at once, as SIGKILL does. A goroutine of the process itself
// does not return from it.
func (p *Process) Kill() {
	if p.dead {
		return
	}
	p.s.Note(p.name, "killed", int64(p.life))
	p.dead, p.died = true, p.s.now
	p.s.ready = append(p.s.ready, p.held...)
	p.held = nil
	p.poll()
	p.lives = slices.DeleteFunc(p.lives, func(l *Process) bool { return l == p })
	if r := p.s.running; r != nil && r.proc == p {
		panic(killed{})
	}
}

// KillAt makes the process die at its nth Boundary from now on; 1 is the next one.
func (p *Process) KillAt(nth int) { p.killAt = nth }

// DiedAtBoundary reports whether the process died at the Boundary that KillAt named, and
// not by something else before.
func (p *Process) DiedAtBoundary() bool { return p.atIO }

// Boundary is a scheduling point at an I/O operation: before it, between its effect
// and its return, after it. The process may die here.
func (p *Process) Boundary() {
	p.MayDie()
	t := p.s.running
	if p.s.alone(t) {
		return
	}
	t.ready = true
	p.s.giveWay(p)
	t.ready = false
}

// MayDie is a Boundary at which no other process runs: for an operation next to a Wait,
// which does.
func (p *Process) MayDie() {
	if p.dead || p.s.ended {
		panic(killed{})
	}
	if p.killAt > 0 {
		if p.killAt--; p.killAt == 0 {
			p.atIO = !p.dead
			p.Kill()
		}
	}
}

// Pause stops the process for d of true time, as SIGSTOP does: its clocks and timers
// go on. Pauses do not add up: the latest end counts.
func (p *Process) Pause(d time.Duration) {
	if p.dead {
		return
	}
	p.s.Note(p.name, "paused", int64(d))
	if !p.paused {
		p.paused, p.since = true, p.s.now
	}
	p.until = max(p.until, p.s.now+d)
	p.After(d, func() {
		if p.paused && p.s.now >= p.until {
			p.resume()
		}
	})
}

func (p *Process) resume() {
	p.paused = false
	p.stood += p.s.now - p.since
	p.s.ready = append(p.s.ready, p.held...)
	p.held = nil
}

// Go implements leaf.Runtime.
func (p *Process) Go(f func()) { p.s.start(p, f) }

// Wait implements leaf.Runtime. d is measured by the machine's clocks.
func (p *Process) Wait(ctx context.Context, wake <-chan struct{}, d time.Duration) error {
	s := p.s
	t := s.running
	t.wake, t.done, t.due = wake, ctx.Done(), false
	var end *timer
	if d > 0 {
		end = &timer{of: p.Machine, wait: t}
		s.addTimer(p.trueFor(d), end)
	}
	s.giveWay(p)
	if end != nil {
		end.over = true
	}
	t.wake, t.done = nil, nil
	if !isDone(wake) && !t.due {
		return ctx.Err()
	}
	return nil
}

// Sleep is Wait for a time alone.
func (p *Process) Sleep(d time.Duration) { _ = p.Wait(context.Background(), nil, max(d, 1)) }

// Jitter implements leaf.Runtime.
func (p *Process) Jitter(d time.Duration) time.Duration {
	if d < 2 {
		return d
	}
	return d/2 + time.Duration(p.s.rng.Int64N(int64(d/2)))
}
