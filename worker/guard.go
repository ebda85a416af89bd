package worker

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/internal/bounded"
)

// guard keeps the faults of code that is not ours, such as a registry's driver, from the
// engine. A panic is an error, and so is a call that goes on after the end of its context: the
// outcome is unknown in both cases. A call that never returns costs one goroutine, because
// nothing calls the same method again before it has returned.
type guard struct {
	rt  leaf.Runtime
	log *slog.Logger

	mu       sync.Mutex
	hung     map[string]hungCall // by the name of the call
	panicked *panicError         // the latest: a driver that panics may keep its own lock
}

// hungCall is a call that has not returned in time.
type hungCall struct {
	since time.Time
	done  <-chan struct{} // closed when it has returned
}

// guardPatience is how long a call may go on after the end of its context.
const guardPatience = time.Second

// panicError is a panic in a call, without its stack, which is in the log.
type panicError struct {
	call  string
	cause any
}

func (e *panicError) Error() string { return fmt.Sprintf("panic in %s: %v", e.call, e.cause) }

// heed logs and remembers the panic of a call, and returns it without its stack. It returns any
// other error as it is.
func (g *guard) heed(err error) error {
	p, ok := errors.AsType[*bounded.PanicError](err)
	if !ok {
		return err
	}
	failed := &panicError{p.What, p.Cause}
	g.mu.Lock()
	g.panicked = failed
	g.mu.Unlock()
	g.log.Error("a call of snowflake mode panicked; its outcome is unknown, and it is tried again", "call", p.What, "panic", p.Cause, "stack", string(p.Stack))
	return failed
}

// hangs returns an error while the call has not returned.
func (g *guard) hangs(call string) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	h, ok := g.hung[call]
	if !ok {
		return nil
	}
	select {
	case <-h.done:
		delete(g.hung, call)
		return nil
	default:
	}
	err := fmt.Errorf("%s has not returned since %s, although its deadline has passed; if that stays so, restart the node", call, h.since.UTC().Format(time.RFC3339))
	if g.panicked != nil {
		err = fmt.Errorf("%w. Before, there was a %w", err, g.panicked)
	}
	return err
}

// guardedCall returns what f returns, soon after ctx has ended at the latest.
func guardedCall[T any](ctx context.Context, g *guard, call string, f func() (T, error)) (T, error) {
	var none T
	if err := g.hangs(call); err != nil {
		return none, err
	}
	since := g.rt.Now()
	answer, late, err := bounded.Call(ctx, g.rt, call, guardPatience, f)
	if late == nil {
		return answer, g.heed(err)
	}
	g.mu.Lock()
	g.hung[call] = hungCall{since, late}
	g.mu.Unlock()
	return none, cmp.Or(g.hangs(call), errors.New(call+" has returned too late"))
}

// guarded is a registry whose driver may panic or never return.
type guarded struct {
	Registry
	*guard
}

func (g guarded) Claim(ctx context.Context, req Request) (Record, error) {
	return guardedCall(ctx, g.guard, "Registry.Claim", func() (Record, error) { return g.Registry.Claim(ctx, req) })
}

func (g guarded) Renew(ctx context.Context, own Record, bound int64) (Record, error) {
	return guardedCall(ctx, g.guard, "Registry.Renew", func() (Record, error) { return g.Registry.Renew(ctx, own, bound) })
}

func (g guarded) Release(ctx context.Context, own Record, floor int64) error {
	return guardedDo(ctx, g.guard, "Registry.Release", func() error { return g.Registry.Release(ctx, own, floor) })
}

func (g guarded) List(ctx context.Context) ([]Record, error) {
	return guardedCall(ctx, g.guard, "Registry.List", func() ([]Record, error) { return g.Registry.List(ctx) })
}

func (g guarded) Announce(ctx context.Context, p Peer) error {
	return guardedDo(ctx, g.guard, "Registry.Announce", func() error { return g.Registry.Announce(ctx, p) })
}

func (g guarded) Withdraw(ctx context.Context, p Peer) error {
	return guardedDo(ctx, g.guard, "Registry.Withdraw", func() error { return g.Registry.Withdraw(ctx, p) })
}

func (g guarded) Peers(ctx context.Context) ([]Peer, error) {
	return guardedCall(ctx, g.guard, "Registry.Peers", func() ([]Peer, error) { return g.Registry.Peers(ctx) })
}

// end is Close, soon after ctx has ended at the latest.
func (g guarded) end(ctx context.Context) error {
	return guardedDo(ctx, g.guard, "Registry.Close", g.Close)
}

// guardedDo is guardedCall of a call that returns only an error.
func guardedDo(ctx context.Context, g *guard, call string, f func() error) error {
	_, err := guardedCall(ctx, g, call, func() (struct{}, error) { return struct{}{}, f() })
	return err
}
