package discovery

import (
	"cmp"
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/leaf-idgen/leaf/internal/bounded"
)

// calls are those of one kind. One that has not returned in time keeps the next one from
// being made, so it costs one goroutine.
type calls struct {
	kind string

	mu   sync.Mutex
	hung <-chan struct{} // closed when the one that hung has returned; nil: none did
}

// callPatience is how long a call may go on after the end of its context.
const callPatience = time.Second

// hangs returns an error while a call has not returned.
func (c *calls) hangs() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.hung == nil {
		return nil
	}
	select {
	case <-c.hung:
		c.hung = nil
		return nil
	default:
		return fmt.Errorf("%s of the directory has not returned, although its deadline has passed; if that stays so, restart the node", c.kind)
	}
}

// call makes one call to the directory, and returns soon after its deadline at the latest. A
// panic of the driver, and a call that goes on, are errors whose outcome is unknown.
func (a *Announcer) call(ctx context.Context, c *calls, f func(context.Context) error) error {
	if err := c.hangs(); err != nil {
		return err
	}
	ctx, cancel := a.rt.WithTimeout(ctx, a.cfg.Timeout)
	defer cancel()
	_, late, err := bounded.Call(ctx, a.rt, "the directory", callPatience, func() (struct{}, error) { return struct{}{}, f(ctx) })
	if late == nil {
		return err
	}
	c.mu.Lock()
	c.hung = late
	c.mu.Unlock()
	return cmp.Or(c.hangs(), context.DeadlineExceeded)
}
