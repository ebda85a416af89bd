package worker

import (
	"context"
	"fmt"
	"log/slog"
	"runtime/debug"
)

// guarded turns a panic in a registry's driver into an error, as if the registry had not
// answered: the outcome of the call is unknown, and the other mode goes on.
type guarded struct {
	Registry

	log *slog.Logger
}

// recovered sets err if the function that defers it panics, and logs where.
func recovered(log *slog.Logger, call string, err *error) {
	if p := recover(); p != nil {
		*err = fmt.Errorf("panic in %s: %v", call, p)
		log.Error("a call of snowflake mode panicked; its outcome is unknown, and it is tried again", "call", call, "panic", p, "stack", string(debug.Stack()))
	}
}

func (g guarded) Claim(ctx context.Context, req Request) (own Record, err error) {
	defer recovered(g.log, "Registry.Claim", &err)
	return g.Registry.Claim(ctx, req)
}

func (g guarded) Renew(ctx context.Context, own Record, bound int64) (now Record, err error) {
	defer recovered(g.log, "Registry.Renew", &err)
	return g.Registry.Renew(ctx, own, bound)
}

func (g guarded) Release(ctx context.Context, own Record, floor int64) (err error) {
	defer recovered(g.log, "Registry.Release", &err)
	return g.Registry.Release(ctx, own, floor)
}

func (g guarded) List(ctx context.Context) (all []Record, err error) {
	defer recovered(g.log, "Registry.List", &err)
	return g.Registry.List(ctx)
}

func (g guarded) Announce(ctx context.Context, p Peer) (err error) {
	defer recovered(g.log, "Registry.Announce", &err)
	return g.Registry.Announce(ctx, p)
}

func (g guarded) Withdraw(ctx context.Context, p Peer) (err error) {
	defer recovered(g.log, "Registry.Withdraw", &err)
	return g.Registry.Withdraw(ctx, p)
}

func (g guarded) Peers(ctx context.Context) (all []Peer, err error) {
	defer recovered(g.log, "Registry.Peers", &err)
	return g.Registry.Peers(ctx)
}

func (g guarded) Close() (err error) {
	defer recovered(g.log, "Registry.Close", &err)
	return g.Registry.Close()
}
