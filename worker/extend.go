package worker

import (
	"fmt"
	"time"

	"github.com/leaf-idgen/leaf"
)

// extend keeps the inner bound t ahead of the clock until the session ends. It is a
// loop of its own, so that a registry that hangs does not hold it up.
func (h *Holder) extend(s *session) {
	defer close(s.extended)
	for {
		if err := h.rt.Wait(h.base, s.ended, h.cfg.Ahead/3); err != nil {
			return
		}
		select {
		case <-s.ended:
			return
		default:
		}
		h.extendOnce(s)
	}
}

// extendOnce raises t to Ahead from now, never above T. The order is the guarantee:
// durable first, issued after (guarantee 6 and 7).
func (h *Holder) extendOnce(s *session) {
	now, err := h.trusted(s)
	if err != nil {
		do := "set the clock right (slew it, do not step it). If it is right now, wait: the node issues again when the clock has passed the moment that the text names"
		switch {
		case h.clock.impossible(now) != nil:
			do = setClockRight
		case h.clock.jumped() != nil:
			do = "set the clock right (slew it, do not step it); if it is right now, run: leaf worker confirm-clock"
		}
		h.cfg.Alarms.Raise(leaf.Alarm{Code: leaf.AlarmClock, Subject: clockSubject, Text: err.Error(), Do: do})
		if h.unwritten != nil { // the alarm of the disk must not outlast its trouble
			claim, asked := s.proof()
			_ = h.writeFile(h.base, claim, asked, s.inner.Load(), s.bound.Load())
		}
		return
	}
	h.cfg.Alarms.Clear(leaf.AlarmClock, clockSubject)
	bound := s.bound.Load()
	inner := h.unit(now.Add(h.cfg.Ahead))
	claim, asked := s.proof()
	inner = max(min(inner, bound), s.inner.Load())
	if inner == s.inner.Load() && h.unwritten == nil {
		return
	}
	again := h.unwritten != nil // the alarm tells of the later ones
	if err := h.writeFile(h.base, claim, asked, inner, bound); err != nil {
		if !again {
			h.log.Warn("the time bound is not extended", "until", time.UnixMilli(s.inner.Load()).UTC(), "error", err)
		}
		return
	}
	s.inner.Store(inner)
	s.gen.SetBound(inner)
}

// trusted returns the time, and an error if it may not raise a bound: the clock is
// behind what was issued, or has run ahead of elapsed time (rule F). The position is
// read first, because others issue meanwhile.
func (h *Holder) trusted(s *session) (time.Time, error) {
	position := time.UnixMilli(s.gen.Position())
	now, elapsed := h.read()
	if err := h.clock.look(now, elapsed); err != nil {
		return now, err
	}
	if behind := position.Sub(now); behind > max(h.cfg.Tolerance, 0)+h.cfg.Layout.Unit {
		return now, fmt.Errorf("%w: the clock is %v behind what was issued; it heals when the clock has passed %s", leaf.ErrClock,
			behind.Round(time.Millisecond), position.UTC().Format(time.RFC3339Nano))
	}
	return now, nil
}
