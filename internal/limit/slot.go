package limit

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/leaf-idgen/leaf"
)

// slot is the context that a request shows to the engine, and its leaf.Admission: when the
// engine is about to let the request wait, it asks, and the request takes a slot of the
// concurrency limit. So a request that finds IDs in stock shares no counter with others and
// is never rejected.
type slot struct {
	context.Context //nolint:containedctx // it is one
	lines           *lines
	tag             string

	limit *adaptive // the one of the tag; nil: the engine has not called Admit
	since time.Time // when it has
	held  bool      // the request may wait

	derived atomic.Bool // other contexts were made from this one
}

var slots = sync.Pool{New: func() any { return new(slot) }}

// Done implements context.Context. Package context calls it when a context with a deadline is made from this one. The timer
// of that context reads the slot when the deadline comes, which can be the moment in which the request ends.
func (s *slot) Done() <-chan struct{} {
	if !s.derived.Load() {
		s.derived.Store(true)
	}
	return s.Context.Done()
}

// Value implements context.Context.
func (s *slot) Value(key any) any {
	if _, ok := key.(leaf.AdmissionKey); ok {
		return s
	}
	return s.Context.Value(key)
}

// Admit implements leaf.Admission.
func (s *slot) Admit() error {
	if s.limit == nil {
		s.limit = s.lines.line(s.tag)
		s.since = s.limit.rt.Now()
		s.held = s.limit.acquire(s.tag, s.since)
	}
	if s.held {
		return nil
	}
	return s.limit.refusal()
}

// release ends the request with err, and returns the error for its caller.
func (s *slot) release(err error) error {
	switch {
	case s.limit == nil && s.derived.Load(): // as of a call that another node has answered
	case s.limit == nil: // nothing looks at it any more
		s.Context, s.lines, s.tag = nil, nil, ""
		slots.Put(s)
	case s.held:
		s.limit.release(s.tag, s.since, err)
	case err != nil:
		return s.limit.refusal() // whatever the engine made of it
	}
	return err
}
