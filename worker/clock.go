package worker

import (
	"fmt"
	"sync"
	"time"

	"github.com/leaf-idgen/leaf"
)

// clockWatch compares the wall clock with elapsed time. A wall clock that runs ahead
// is not believed at once: a jump to the year 2099 must not burn the worker ID by a T
// in that year. A step back is believed at once, because T and t never fall by it; the
// measure steps back with the clock, so that a clock that was far ahead and was set
// right may not jump there again.
type clockWatch struct {
	limit time.Duration // how far the clock may run ahead between two looks
	reach time.Duration // what a T ahead of time may cost: as long as a crash keeps a number from others

	first, end time.Time // the times of the layout, half-open

	mu       sync.Mutex
	now      line          // the latest look that was believed
	left     line          // where the clock was before it stepped back, zero if it may not return there
	leftAt   time.Duration // elapsed time when it left
	doubtful bool          // the peers object to the clock: it may not return to where it is
	jump     error         // leaf.ErrClock while the clock is not believed
	ahead    time.Duration // of the jump
	since    time.Duration // elapsed time at the first look that found the jump
}

// line is a clock that goes on as elapsed time does, by one look at it.
type line struct {
	wall    time.Time // without a monotonic reading
	elapsed time.Duration
}

func (l line) at(elapsed time.Duration) time.Time { return l.wall.Add(elapsed - l.elapsed) }

// look takes a reading and returns nil, or leaf.ErrClock if it is not believed. A
// clock that is back within the limit is believed again, also where it was before it
// stepped back, unless it left that long ago. A clock before the epoch, as one that was
// never set, is no measure: else the true time would be a jump.
func (c *clockWatch) look(now time.Time, elapsed time.Duration) error {
	if now.Before(c.first) {
		return c.impossible(now)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	here := line{now.Round(0), elapsed}
	if c.now.wall.IsZero() {
		c.now = here
		return nil
	}
	switch ahead := here.wall.Sub(c.now.at(elapsed)); {
	case ahead > c.limit:
		if !c.left.wall.IsZero() && elapsed-c.leftAt <= c.reach && here.wall.Sub(c.left.at(elapsed)).Abs() <= c.limit {
			c.left, c.doubtful = line{}, false
			break
		}
		if c.jump == nil || (ahead-c.ahead).Abs() > c.limit {
			c.since, c.ahead = elapsed, ahead
		}
		c.jump = fmt.Errorf("%w: the wall clock jumped %v ahead of elapsed time, more than the %v that are believed at once; unless a peer objects, it is believed once it has stood for %v",
			leaf.ErrClock, c.ahead.Round(time.Second), c.limit, c.stands().Round(time.Second))
		return c.jump
	case ahead < -c.limit:
		if !c.doubtful && (c.left.wall.IsZero() || elapsed-c.leftAt > c.reach) {
			c.left, c.leftAt = c.now, elapsed
		}
		c.doubtful = false
	}
	c.jump, c.now = nil, here
	return nil
}

// impossible returns leaf.ErrClock if no ID can have the time now. A clock that is before the
// epoch of the layout or past its end claims nothing. T, and the moment from which the numbers
// of a new namespace may be used, are cut off at the ends of the layout: at the epoch that
// moment would be over, so nothing would wait after a wipe, and at the end each claim would use
// its number up.
func (c *clockWatch) impossible(now time.Time) error {
	if !now.Before(c.first) && now.Before(c.end) {
		return nil
	}
	return fmt.Errorf("%w: the clock of this node says %s, and IDs of its layout have times from %s until %s; no worker ID is claimed and no time bound is raised by such a clock", leaf.ErrClock,
		now.UTC().Format(time.RFC3339), c.first.Format(time.RFC3339), c.end.Format(time.RFC3339))
}

// jumped returns what the last look said.
func (c *clockWatch) jumped() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.jump
}

// stands is how long a jump must stand before it is believed although no peer confirms
// it: until a wrong clock costs no more time of a number than a crash does. A jump to
// the year 2099 never stands long enough.
func (c *clockWatch) stands() time.Duration { return max(c.limit, c.ahead-c.reach) }

// stood reports whether the present jump has stood for that long.
func (c *clockWatch) stood(elapsed time.Duration) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.jump != nil && elapsed-c.since >= c.stands()
}

// believe makes now the measure, because the clock is confirmed. It returns leaf.ErrClock, and
// changes nothing, if no ID can have that time, also if peers or an operator confirm it: T would be the end of the
// layout, and its number could never be used again.
func (c *clockWatch) believe(now time.Time, elapsed time.Duration) error {
	if err := c.impossible(now); err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now, c.left, c.doubtful, c.jump = line{now.Round(0), elapsed}, line{}, false, nil
	return nil
}

// judged notes what the peers say of the clock as it is. If they object, a clock that
// is set right may not jump back here; if they do not, it may not jump away to where it
// was before.
func (c *clockWatch) judged(right bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.doubtful = !right
	if right && c.jump == nil {
		c.left = line{}
	}
}

// setClockRight is what to do about an impossible clock: to confirm it is no cure.
const setClockRight = "set the clock of this node right; the node goes on by itself then"

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
// jump. It returns the time of the clock, and leaf.ErrClock if no ID can have that time: then it is
// not believed.
func (h *Holder) ConfirmClock() (time.Time, error) {
	now, elapsed := h.read()
	return now, h.believe(now, elapsed, "the administrator")
}

// believe makes a reading the measure.
func (h *Holder) believe(now time.Time, elapsed time.Duration, by string) error {
	if err := h.clock.believe(now, elapsed); err != nil {
		return err
	}
	h.log.Info("the wall clock is confirmed", "now", now.UTC(), "by", by)
	h.nudge()
	return nil
}
