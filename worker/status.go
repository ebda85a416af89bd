package worker

import (
	"sync/atomic"
	"time"

	"github.com/leaf-idgen/leaf/snowflake"
)

// counters count since New.
type counters struct {
	claims, losses, refusals, renewFailures, clockErrors atomic.Int64
}

// Status is a snapshot for people, health checks and metrics.
type Status struct {
	Info   Info
	State  State
	Ready  bool   // IDs can be issued now
	Reason string // why not, or what is wrong all the same; "" if all is well
	Err    error  // the Reason of a state that is not Serving, for errors.Is

	Number    int64 // -1: none
	Address   string
	Confirmed bool  // the registry knows the claim; false: it stems from the node's file
	Floor     int64 // Unix ms: nothing below is issued by this claim
	Position  int64 // Unix ms: end of what was issued
	Inner     int64 // Unix ms: t
	Bound     int64 // Unix ms: T

	Horizon time.Duration // how far a renewal sets T ahead

	Sequence, Capacity int64 // of the last unit: see snowflake.Generator.Sequence

	Clock Offsets   // the last comparison with the peers
	Asked time.Time // when that was; zero: never
	End   time.Time // of the layout, or of one of the further layouts if that is earlier

	Claims, Losses, Refusals, RenewFailures, ClockErrors int64
}

// Status returns a snapshot.
func (h *Holder) Status() Status {
	s := Status{
		Info: h.info, Number: -1, Address: h.cfg.Address, End: h.clock.end, Horizon: h.cfg.Horizon,
		Claims: h.counters.claims.Load(), Losses: h.counters.losses.Load(), Refusals: h.counters.refusals.Load(),
		RenewFailures: h.counters.renewFailures.Load(), ClockErrors: h.counters.clockErrors.Load(),
	}
	h.mu.Lock()
	s.State, s.Err = h.state, h.reason
	if h.reason != nil {
		s.Reason = h.reason.Error()
	}
	h.mu.Unlock()
	h.peers.mu.Lock()
	s.Clock, s.Asked = h.peers.Offsets, h.peers.at
	h.peers.mu.Unlock()
	held := h.session.Load()
	if held == nil {
		return s
	}
	s.Number, s.Confirmed = held.number(), held.confirmed.Load()
	s.Floor, s.Position, s.Inner, s.Bound = held.from, held.gen.Position(), held.inner.Load(), held.bound.Load()
	s.Sequence, s.Capacity = held.gen.Sequence()
	now, err := h.trusted(held)
	switch {
	case s.State != Serving:
	case err != nil:
		s.Reason = err.Error()
		// With UseReserved a clock that is behind still has the time up to t.
		s.Ready = h.cfg.Policy == snowflake.UseReserved && h.clock.jumped() == nil && s.Position < s.Inner
	case !now.Before(s.End):
		s.Reason = "no IDs are issued: the clock is past the end of the layout, " + s.End.Format(time.DateOnly)
	case now.UnixMilli() >= s.Inner:
		s.Reason = "no IDs are issued: the time bound is used up, because the registry or the disk does not answer"
	default:
		s.Ready = true
	}
	if s.State == Serving && !s.Ready {
		s.State = Stalled
	}
	return s
}
