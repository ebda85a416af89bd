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
	proc    *Process
	cancel  context.CancelFunc
	at      time.Time
	end     timer
	expired bool
}

// WithTimeout implements leaf.Runtime.
func (p *Process) WithTimeout(parent context.Context, d time.Duration) (context.Context, context.CancelFunc) {
	c := &deadline{parent: parent, proc: p, at: p.Now().Add(d)}
	c.Context, c.cancel = context.WithCancel(parent)
	if at, ok := parent.Deadline(); ok && at.Before(c.at) {
		c.at = at
	}
	c.end = timer{of: p.Machine, ctx: c}
	p.s.addTimer(p.trueFor(d), &c.end)
	return c, c.stop
}

func (c *deadline) stop() {
	c.end.over = true
	c.cancel()
}

// expire is called at the deadline.
func (c *deadline) expire() {
	c.expired = c.Context.Err() == nil
	c.cancel()
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
