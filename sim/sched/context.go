package sched

import (
	"context"
	"time"
)

// deadline is context.WithTimeout on a machine's clock. Its Done channel is that of a
// cancelCtx of the standard library, so contexts derived from it are cancelled with it
// without a goroutine. They report Canceled where those of the standard library would
// report DeadlineExceeded; the engines derive none but by WithTimeout.
type deadline struct {
	context.Context //nolint:containedctx // it is one; cancelled at the deadline

	parent  context.Context //nolint:containedctx // whose error counts first
	at      time.Time
	expired bool
}

// WithTimeout implements leaf.Runtime.
func (p *Process) WithTimeout(parent context.Context, d time.Duration) (context.Context, context.CancelFunc) {
	inner, cancel := context.WithCancel(parent)
	c := &deadline{Context: inner, parent: parent, at: p.Now().Add(d)}
	if at, ok := parent.Deadline(); ok && at.Before(c.at) {
		c.at = at
	}
	end := p.s.addTimer(p.trueFor(d), p.Machine, func() {
		c.expired = inner.Err() == nil
		cancel()
	})
	return c, func() {
		end.fire = nil
		cancel()
	}
}

// Deadline implements context.Context.
func (c *deadline) Deadline() (time.Time, bool) { return c.at, true }

// Err implements context.Context.
func (c *deadline) Err() error {
	switch err := c.Context.Err(); {
	case err == nil:
		return nil
	case c.expired:
		return context.DeadlineExceeded
	case c.parent.Err() != nil:
		return c.parent.Err()
	default:
		return err
	}
}
