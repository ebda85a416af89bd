package worker

import (
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/leaf-idgen/leaf"
)

// renew renews until the claim is lost, which it returns, or the Holder is closed.
func (h *Holder) renew(s *session) error {
	if s.confirmed.Load() {
		h.announce(*s.claim.Load())
		h.inspect()
	}
	for {
		h.pause(h.cfg.Renew)
		if h.isClosing() {
			return nil
		}
		if lost := h.renewOnce(s); lost != nil {
			return lost
		}
		h.recheck()
		h.reinspect()
		h.warnOfEnd()
		if lost := h.outOfReach(s); lost != nil {
			return lost
		}
	}
}

// renewOnce renews T, or asks for a claim that has not been confirmed yet. It returns
// an error only if the claim is lost. T does not grow while the clock cannot be
// trusted (rule F).
func (h *Holder) renewOnce(s *session) (lost error) {
	bound := s.bound.Load()
	inner := s.inner.Load()
	now, err := h.trusted(s)
	h.doubts = err != nil && (h.session.Load() == s || h.clock.jumped() != nil) // a floor ahead is no fault of the clock
	if err == nil {
		bound = max(bound, h.unit(now.Add(h.cfg.Horizon)))
	}
	own := *s.claim.Load()
	switch {
	case s.confirmed.Load():
		// A file with less than this t is an old copy (see previous in pool.go).
		own.Floor = min(max(own.Floor, inner), own.Bound)
		ctx, cancel := h.rt.WithTimeout(h.base, h.cfg.Timeout)
		own, err = h.reg.Renew(ctx, own, bound)
		cancel()
	default:
		own, err = h.confirm(s)
	}
	switch {
	case err == nil:
		h.renewed(s, own)
	case h.isClosing():
	case errors.Is(err, leaf.ErrClock) && !errors.Is(err, ErrAhead): // a confirmation needs the time; extend tells what is wrong
	case answered(err) && !unusable(err):
		return err
	default:
		h.counters.renewFailures.Add(1)
		if h.failures++; h.failures > 1 {
			until := s.bound.Load()
			if h.session.Load() != s {
				until = 0 // it waits for its floor
			}
			h.registryAlarm(err, until)
		}
	}
	return nil
}

// unusable reports whether the registry said nothing about the claim, only that it cannot
// be used as it is, e.g. because a table was renamed for a moment. T holds all the same.
func unusable(err error) bool {
	return errors.Is(err, ErrSchema) || errors.Is(err, leaf.ErrConflict) || errors.Is(err, leaf.ErrBadRequest)
}

// renewed takes over what the registry acknowledged.
func (h *Holder) renewed(s *session, own Record) {
	s.claim.Store(&own)
	if !s.confirmed.Swap(true) { // only now: see proof
		h.log.Info("worker ID confirmed by the registry", "worker", own.Number)
	}
	raise(&s.bound, own.Bound)
	h.failures = 0
	h.cfg.Alarms.Clear(leaf.AlarmRegistry, h.info.Name)
	h.announce(own)
}

// confirm claims the number of a session that began from the node's file: the registry did
// not answer then. The file's nonce proves that the number was ours. If the registry says that
// the number may be used only from a time after what we have issued, another node had it
// meanwhile, and our generator must not go on, even if the number is ours again.
func (h *Holder) confirm(s *session) (Record, error) {
	old := s.claim.Load()
	inner := s.inner.Load()
	own, err := h.claim(s.asked[len(s.asked)-1], s.previous(inner), nil)
	switch {
	case err != nil:
		return own, err
	case own.Number != old.Number:
		return own, fmt.Errorf("%w: the registry gave %d instead of %d to this node", ErrLost, own.Number, old.Number)
	case own.Floor > inner:
		return own, fmt.Errorf("%w: another node had worker ID %d until %s", ErrLost, own.Number, time.UnixMilli(own.Floor).UTC().Format(time.RFC3339Nano))
	}
	h.asked = nil
	return own, nil
}

// raise sets a to v if that is more.
func raise(a *atomic.Int64, v int64) {
	for old := a.Load(); old < v && !a.CompareAndSwap(old, v); old = a.Load() {
	}
}
