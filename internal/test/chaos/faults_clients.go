package chaos

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"sync"
	"time"
)

// idleEach is how many connections the hostile client wants to each port of a node: more
// on one port than the node may have files.
const idleEach = 1100

// idleConnections is the name of the fault in which a client wants all of a node's files.
const idleConnections = "idle connections"

// clientFaults are what a client does to a node that may have openFiles files open.
func (c *cluster) clientFaults() []fault {
	return []fault{{
		name:  idleConnections,
		about: fmt.Sprintf("a client opens %d connections to each of the three ports of the node, which may have %d files open, says nothing, and comes again when it is refused; they are closed.", idleEach, openFiles),
		group: ofClients, targets: c.nodeTargets(), hold: seconds(3, 8), alone: true, extra: 2 * time.Second,
		begin: func(ctx context.Context, t target, _ *rand.Rand) (func(context.Context) error, string, error) {
			n := c.nodes[t.nodes[0]]
			ctx, cancel := context.WithCancel(ctx)
			var all sync.WaitGroup
			for _, addr := range []string{n.addr, n.beside(grpcPort), n.beside(respPort)} {
				for range idleEach {
					all.Go(func() { idle(ctx, addr) })
				}
			}
			var broken, late []string
			all.Go(func() { broken, late = c.care(ctx, n) })
			return func(context.Context) error {
				cancel()
				all.Wait()
				c.broken, c.late = append(c.broken, broken...), append(c.late, late...)
				return nil
			}, "", nil
		},
	}}
}

// idle keeps a connection open and says nothing, until ctx ends.
func idle(ctx context.Context, addr string) {
	for ctx.Err() == nil {
		conn, err := (&net.Dialer{Timeout: patience}).DialContext(ctx, "tcp", addr)
		if err == nil {
			stop := context.AfterFunc(ctx, func() { conn.Close() })
			_, _ = io.Copy(io.Discard, conn)
			stop()
			conn.Close()
		}
		_ = pause(ctx, 2*time.Second)
	}
}

// care is those who look after a node meanwhile: its health checks and its administrator.
// It returns what they complain of, and what had no answer in time, as on a busy machine.
func (c *cluster) care(ctx context.Context, n *node) (broken, late []string) {
	if pause(ctx, time.Second) != nil { // until the connections are there
		return nil, nil
	}
	checks := []string{"/healthz", "/readyz?mode=segment"}
	if c.registry {
		checks = append(checks, "/readyz?mode=snowflake")
	}
	complain := func(what string, err error) {
		list := &broken
		if errors.Is(err, context.DeadlineExceeded) {
			list = &late
		}
		if ctx.Err() == nil && len(*list) < 5 {
			*list = append(*list, fmt.Sprintf("%s, node %s: %s: %v", idleConnections, n.name, what, err))
		}
	}
	for ctx.Err() == nil {
		for _, path := range checks {
			code, err := get(ctx, n.admin(), path)
			if err == nil && code != http.StatusOK {
				err = fmt.Errorf("it answers %d", code)
			}
			if err != nil {
				complain(path+" of the administrator's port", err)
			}
		}
		if err := c.leafAt(ctx, n.dir, "tag", "list"); err != nil {
			complain("the administrator's command", err)
		}
		_ = pause(ctx, 500*time.Millisecond)
	}
	return broken, late
}

// judgeIdle checks that clients that have a connection notice nothing, nor health checks: ranges are
// loaded and claims renewed meanwhile.
func (r *run) judgeIdle() {
	const least = 0.98 // short ranges end between two loads
	busy := r.report.Machine.Starved(r.report.Ran)
	for _, text := range r.cluster.late {
		r.report.checkUnless(busy, false, "%s", text)
	}
	for _, k := range r.report.Kinds {
		if k.Name == idleConnections && k.Aimed.All > 0 {
			r.report.checkUnless(busy, float64(k.Aimed.InTime) >= least*float64(k.Aimed.All),
				"while a client holds all connections of a node the others that have one are served, all tags and modes: %v of %d in time", k.Aimed, k.Aimed.All)
		}
	}
}
