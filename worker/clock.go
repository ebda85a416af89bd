package worker

import (
	"fmt"
	"sync"
	"time"

	"github.com/leaf-idgen/leaf"
)

// clockWatch compares the wall clock with elapsed time. A wall clock that runs ahead
// is not believed: a jump to the year 2099 must not burn the worker ID by a T in that
// year. A step back needs no such care, because T and t never fall.
type clockWatch struct {
	limit time.Duration

	mu      sync.Mutex
	wall    time.Time     // the latest look that was believed, without a monotonic reading
	elapsed time.Duration // elapsed time at that look
	jump    error         // leaf.ErrClock while the clock is not believed
}

// look takes a reading and returns nil, or leaf.ErrClock if it is not believed. A
// clock that is back within the limit is believed again.
func (c *clockWatch) look(now time.Time, elapsed time.Duration) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	wall := now.Round(0)
	if c.wall.IsZero() {
		c.wall, c.elapsed = wall, elapsed
		return nil
	}
	passed := elapsed - c.elapsed
	ahead := wall.Sub(c.wall) - passed
	if ahead > c.limit {
		c.jump = fmt.Errorf("%w: the wall clock went %v ahead while %v passed, more than the %v that are believed without confirmation",
			leaf.ErrClock, wall.Sub(c.wall).Round(time.Millisecond), passed.Round(time.Millisecond), c.limit)
		return c.jump
	}
	c.jump = nil
	// After a step back the old look stays the measure until the clock has passed it:
	// a clock that comes back has not jumped.
	if wall.After(c.wall) {
		c.wall, c.elapsed = wall, elapsed
	}
	return nil
}

// jumped returns what the last look said.
func (c *clockWatch) jumped() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.jump
}

// believe makes now the measure, because somebody has confirmed it.
func (c *clockWatch) believe(now time.Time, elapsed time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.wall, c.elapsed, c.jump = now.Round(0), elapsed, nil
}

// read reads both clocks: the wall clock, and the time that has passed since some fixed
// moment, whatever the wall clock did. A process that is stopped between the two would
// see one of them jump, and take that for the measure of all that follows; so they are
// read again if that took long.
func (h *Holder) read() (now time.Time, elapsed time.Duration) {
	if h.cfg.Elapsed == nil {
		now = h.rt.Now()
		return now, now.Sub(h.made)
	}
	for {
		elapsed = h.cfg.Elapsed()
		now = h.rt.Now()
		if h.cfg.Elapsed()-elapsed < h.cfg.Jump/10 {
			return now, elapsed
		}
	}
}

// ConfirmClock tells the Holder that the wall clock is right, after it reported a
// jump. It returns the time that is now believed.
func (h *Holder) ConfirmClock() time.Time {
	now, elapsed := h.read()
	h.believe(now, elapsed)
	return now
}

// believe makes a reading the measure.
func (h *Holder) believe(now time.Time, elapsed time.Duration) {
	h.clock.believe(now, elapsed)
	h.log.Info("the wall clock is confirmed", "now", now.UTC())
	h.nudge()
}
