package limit

import (
	"context"
	"sync"
	"sync/atomic"
	"time"
)

// ticket is the context that a request shows to the engine, and how the gate learns that
// it has to wait: an engine looks at a context only when it is about to wait for
// something. Then, and not before, the request enters the waiting room. If that is
// full, the context is over at once, and the engine returns.
//
// So a request that finds IDs in stock shares no counter with others and is never turned
// away; and an engine that looks without need only makes its requests count as waiting.
type ticket struct {
	context.Context //nolint:containedctx // it is one
	room            *room
	tag             string

	once   sync.Once
	turned atomic.Bool // turned away
	asked  atomic.Bool // the request is, or was, in the room or turned away
	since  time.Time   // in the room
	in     bool
}

var tickets = sync.Pool{New: func() any { return new(ticket) }}

// over is the channel of a request that was turned away.
var over = func() chan struct{} {
	c := make(chan struct{})
	close(c)
	return c
}()

// ticket returns the ticket of one request, whose leave must be called.
func (r *room) ticket(ctx context.Context, tag string) *ticket {
	t, _ := tickets.Get().(*ticket)
	t.Context, t.room, t.tag = ctx, r, tag
	return t
}

// Done implements context.Context. For a request that may wait it is the channel of the
// server's context itself, which package context recognises.
func (t *ticket) Done() <-chan struct{} {
	t.once.Do(t.enter)
	if t.turned.Load() {
		return over
	}
	return t.Context.Done()
}

// Err implements context.Context.
func (t *ticket) Err() error {
	t.once.Do(t.enter)
	if t.turned.Load() {
		return context.Canceled
	}
	return t.Context.Err()
}

func (t *ticket) enter() {
	t.asked.Store(true)
	t.since = t.room.rt.Now()
	t.in = t.room.enter(t.tag, t.since)
	t.turned.Store(!t.in)
}

// leave ends the request with err, and returns the error for its caller.
func (t *ticket) leave(err error) error {
	if !t.asked.Load() {
		// The engine never asked for Err or Done, so no derived context refers to the ticket.
		t.Context, t.room, t.tag = nil, nil, ""
		tickets.Put(t)
		return err
	}
	t.once.Do(func() {}) // enter has ended
	if t.in {
		t.room.leave(t.tag, t.since, err)
		return err
	}
	if err == nil {
		return nil // the IDs came after all
	}
	return t.room.refusal()
}
