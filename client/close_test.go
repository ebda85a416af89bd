package client_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/client"
)

// TestClose: calls under way are answered if Close may wait for them, and cut off if
// not; those that come later are refused.
func TestClose(t *testing.T) {
	for _, c := range []struct {
		name    string
		patient time.Duration
		ok      bool
	}{
		{"patient", time.Second, true},
		{"impatient", 100 * time.Millisecond, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				cl := newCluster(node("a", "", 100))
				cl.nodes["a"].latency = 300 * time.Millisecond
				leafClient := cl.client(t)
				synctest.Wait()
				var callers sync.WaitGroup
				for range 10 {
					callers.Go(func() {
						_, err := leafClient.Next(t.Context(), "order")
						if (err == nil) != c.ok || !c.ok && !errors.Is(err, leaf.ErrNotReady) {
							t.Errorf("a call under way: %v", err)
						}
					})
				}
				synctest.Wait()
				ctx, cancel := context.WithTimeout(t.Context(), c.patient)
				defer cancel()
				if err := leafClient.Close(ctx); (err == nil) != c.ok || !c.ok && !errors.Is(err, context.DeadlineExceeded) {
					t.Errorf("Close: %v", err)
				}
				callers.Wait()
				if _, err := leafClient.Next(t.Context(), "order"); !errors.Is(err, leaf.ErrNotReady) {
					t.Errorf("a call after Close: %v", err)
				}
				if err := leafClient.Close(t.Context()); err != nil {
					t.Errorf("second Close: %v", err)
				}
			})
		})
	}
}

// TestStartStop: clients come and go under load, over real sockets; nothing is left
// (TestMain) and nobody hangs.
func TestStartStop(t *testing.T) {
	issuer := &counter{}
	s := startServer(t, issuer)
	var ids ledger
	for i := range 20 {
		c := newClient(t, client.Addresses(s.addr, "127.0.0.1:1"))
		var callers sync.WaitGroup
		for range 8 {
			callers.Go(func() {
				for {
					id, err := c.Next(t.Context(), "order")
					if err != nil {
						if !errors.Is(err, leaf.ErrNotReady) {
							t.Error(err)
						}
						return
					}
					ids.add(t, leaf.Range{Lo: id, Hi: id + 1})
				}
			})
		}
		if i%2 == 0 {
			calls(t, c, 10)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Duration(i%3)*time.Second)
		var closers sync.WaitGroup
		for range 2 {
			closers.Go(func() { c.Close(ctx) })
		}
		closers.Wait()
		cancel()
		callers.Wait()
	}
}
