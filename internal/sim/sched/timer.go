package sched

import "time"

// timer does something at a moment of the true time.
type timer struct {
	of   *Machine // whose clock it follows; nil: the true time
	over bool     // stopped or fired

	// One of these:
	f    func()    // a callback, which wakes tasks of by only, or of any process if by is nil
	by   *Process  //
	wait *task     // the end of a Wait
	ctx  *deadline // the end of a context
}

// After calls f at true time now+d, on no task: f must not wait.
func (s *Scheduler) After(d time.Duration, f func()) { s.addTimer(d, &timer{f: f}) }

// After is Scheduler.After for an f that ends no wait but those of p's goroutines: what
// becomes of a call of p's, for example. It runs whether or not p lives.
func (p *Process) After(d time.Duration, f func()) { p.s.addTimer(d, &timer{f: f, by: p}) }

func (s *Scheduler) addTimer(d time.Duration, t *timer) {
	s.seq++
	s.timers.push(due{s.now + max(d, 0), s.seq, t})
}

// fire does what the timer is for.
func (s *Scheduler) fire(t *timer) {
	t.over = true
	switch {
	case t.wait != nil:
		t.wait.due = true
		t.wait.proc.poll()
	case t.ctx != nil:
		t.ctx.expire()
		t.ctx.proc.poll()
	case t.by != nil:
		t.f()
		s.poll(t.by)
	default:
		t.f()
		s.pollAll()
	}
}

// suspend moves what follows m's clock by d.
func (h timers) suspend(m *Machine, d time.Duration) {
	for i := range h {
		if h[i].of == m {
			h[i].at += d
		}
	}
	for i := len(h)/2 - 1; i >= 0; i-- {
		h.down(i)
	}
}

// due is a timer in the heap.
type due struct {
	at  time.Duration
	seq int64 // of equal moments the older one is first
	*timer
}

func (d due) before(o due) bool { return d.at < o.at || d.at == o.at && d.seq < o.seq }

// timers is a binary heap; container/heap takes twice the time.
type timers []due

func (h *timers) push(d due) {
	all := append(*h, d)
	*h = all
	i := len(all) - 1
	for i > 0 {
		parent := (i - 1) / 2
		if !d.before(all[parent]) {
			break
		}
		all[i] = all[parent]
		i = parent
	}
	all[i] = d
}

func (h *timers) pop() (at time.Duration, t *timer) {
	all := *h
	first, last := all[0], len(all)-1
	all[0] = all[last]
	all[last] = due{}
	*h = all[:last]
	if last > 1 {
		h.down(0)
	}
	return first.at, first.timer
}

func (h timers) down(i int) {
	d := h[i]
	for {
		child := 2*i + 1
		if child >= len(h) {
			break
		}
		if right := child + 1; right < len(h) && h[right].before(h[child]) {
			child = right
		}
		if !h[child].before(d) {
			break
		}
		h[i] = h[child]
		i = child
	}
	h[i] = d
}
