package worker

import (
	"errors"
	"fmt"
	"time"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/snowflake"
)

// errOutOfReach: the number may be used only from a moment ahead of the clock, and another
// number is of use at once.
var errOutOfReach = errors.New("worker: the number lies ahead of the clock")

// giveUp releases a number that lies ahead of the clock. The next claim takes another
// one, as that of a restart would; if there is none, it takes this one again.
func (h *Holder) giveUp(s *session, end int64, why error) {
	h.counters.losses.Add(1)
	h.mu.Lock()
	h.previous = s.previous(end)
	h.previous.Bound = end // which the release makes the T
	h.mu.Unlock()
	h.log.Warn("worker ID is released, and another one is being claimed", "worker", s.number(), "reason", why)
	switch err := h.release(h.base, s, false); {
	case err == nil:
		h.held = nil
	case !h.isClosing(): // else Close releases it
		h.log.Warn("worker ID is not released; it is free after T", "worker", s.number(), "error", err)
	}
}

// outOfReach returns errOutOfReach if a leased number is of no use for longer than the
// margin, because the clock is behind what was issued with it, and a claim would be
// given another one. The registry answers, and no peer objects to the clock: else the
// clock may still come back.
func (h *Holder) outOfReach(s *session) error {
	behind := time.UnixMilli(s.gen.Position()).Sub(h.rt.Now())
	reserved := h.cfg.Policy == snowflake.UseReserved && s.gen.Position() < s.inner.Load()
	if h.info.Kind != Leased || h.cfg.Numbers.Len() < 2 || behind <= max(h.cfg.Margin, h.cfg.Tolerance)+h.cfg.Layout.Unit || reserved || !s.confirmed.Load() || h.failures > 0 {
		return nil
	}
	if !h.clockIsRight() {
		return nil
	}
	return fmt.Errorf("%w: %w: the clock is %v behind what was issued with worker ID %d", leaf.ErrClock, errOutOfReach, behind.Round(time.Millisecond), s.number())
}

// clockIsRight asks the peers, and reports whether the clock is believed.
func (h *Holder) clockIsRight() bool {
	v := h.settle(h.cfg.aside())
	return v.objection == nil && v.jump == nil && h.checkedWithin(h.cfg.Renew, 0)
}

// lookout is what a node that waits for its floor saw when it last looked for another number.
type lookout struct {
	at   time.Duration  // elapsed time
	free map[int64]bool // the numbers of use at once; nil: it has not looked yet
}

// sooner looks once a lease whether another number has become free since the last look. It
// returns errOutOfReach if that is of use at once, and the session's own leased number is not
// within the margin. A number that was free at an earlier look does not count: the claim had
// reasons not to take it, and a new claim would have them again.
func (h *Holder) sooner(s *session, last *lookout) error {
	now, elapsed := h.read()
	left := time.UnixMilli(s.from).Sub(now)
	switch {
	case h.info.Kind != Leased, h.cfg.Numbers.Len() < 2, left <= h.cfg.Margin, !s.confirmed.Load(), h.failures > 0:
		return nil
	case last.free != nil && elapsed-last.at < h.cfg.Lease:
		return nil
	}
	ctx, cancel := h.rt.WithTimeout(h.base, h.cfg.aside())
	defer cancel()
	records, err := h.reg.List(ctx)
	if err != nil {
		return nil // the renewals tell
	}
	req := Request{Now: now.UnixMilli(), Margin: h.cfg.Margin.Milliseconds()}
	look, found := lookout{elapsed, map[int64]bool{}}, int64(-1)
	for _, r := range records {
		if r.Damage != "" || r.Number == s.number() || !inRange(h.cfg.Numbers, r.Number) || !r.free(req) || r.Bound > req.Now {
			continue
		}
		look.free[r.Number] = true
		if last.free != nil && !last.free[r.Number] {
			found = r.Number
		}
	}
	if found >= 0 && !h.clockIsRight() {
		last.at = elapsed
		return nil
	}
	if *last = look; found < 0 {
		return nil
	}
	return fmt.Errorf("%w: worker ID %d is of use at once, and worker ID %d only in %v", errOutOfReach, found, s.number(), left.Round(time.Millisecond))
}
