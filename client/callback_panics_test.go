package client_test

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/client"
	"github.com/leaf-idgen/leaf/client/cache"
	"github.com/leaf-idgen/leaf/discovery"
)

// newBare returns a client that the caller closes.
func newBare(t *testing.T, r client.Resolver, opts ...client.Option) *client.Client {
	t.Helper()
	c, err := client.New(r, append([]client.Option{client.WithLogger(slog.New(slog.DiscardHandler))}, opts...)...)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// TestCallbackPanics: a function of the application that panics ends no program, and says
// nothing about the node. The error names the function. Calls go on when it works again.
func TestCallbackPanics(t *testing.T) {
	for _, place := range places {
		t.Run(place, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				var works atomic.Bool
				c := overWires(t, hook(place, func(context.Context) error {
					if !works.Load() {
						panic("an accident")
					}
					return nil
				}))
				for range 10 {
					ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
					_, err := c.Next(ctx, "order")
					cancel()
					if err == nil || !strings.Contains(err.Error(), nameOf(place)) || !strings.Contains(err.Error(), "an accident") {
						t.Errorf("a call ended with %v", err)
					}
				}
				time.Sleep(10 * time.Second)
				healthy(t, c)
				works.Store(true)
				calls(t, c, 3)
				if err := c.Close(t.Context()); err != nil {
					t.Error(err)
				}
			})
		})
	}
}

// TestCallbackFails: an error of an interceptor is no error of the node.
func TestCallbackFails(t *testing.T) {
	for _, place := range places[1:] {
		t.Run(place, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				c := overWires(t, hook(place, func(context.Context) error { return errors.New("not today") }))
				for range 10 {
					ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
					_, err := c.Next(ctx, "order")
					cancel()
					if !errors.Is(err, leaf.ErrNotReady) || !strings.Contains(err.Error(), "not today") {
						t.Errorf("a call ended with %v", err)
					}
				}
				time.Sleep(10 * time.Second)
				healthy(t, c)
				if err := c.Close(t.Context()); err != nil {
					t.Error(err)
				}
			})
		})
	}
}

// TestBadToken: a token that no header may carry is the function's fault.
func TestBadToken(t *testing.T) {
	for _, token := range []string{"token\n", strings.Repeat("x", 4<<10+1), "tök"} {
		bubble(t, func(t *testing.T) {
			c := overWires(t, client.WithTokenFunc(func(context.Context) (string, error) { return token, nil }))
			if _, err := c.Next(t.Context(), "order"); !errors.Is(err, leaf.ErrUnauthenticated) || !strings.Contains(err.Error(), "WithTokenFunc") || strings.Contains(err.Error(), token) {
				t.Errorf("a call ended with %v", err)
			}
			time.Sleep(10 * time.Second)
			healthy(t, c)
			if err := c.Close(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestOtherCallbacksPanic: the Resolver, the log handler, the dialer and the trace, also
// in a fetch of the cache.
func TestOtherCallbacksPanic(t *testing.T) {
	accident := func() { panic("an accident") }
	for name, opts := range map[string][]client.Option{
		"begin of a trace": {client.WithTrace(func(context.Context, client.Call) func(error) { accident(); return nil })},
		"end of a trace":   {client.WithTrace(func(context.Context, client.Call) func(error) { return func(error) { accident() } })},
		"trace of a fetch": {client.WithCache(cache.Config{}), client.WithTrace(func(context.Context, client.Call) func(error) { return func(error) { accident() } })},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				c := overWires(t, opts...)
				calls(t, c, 3)
				if err := c.Close(t.Context()); err != nil {
					t.Error(err)
				}
			})
		})
	}
	t.Run("resolver", func(t *testing.T) {
		bubble(t, func(t *testing.T) {
			cl := newCluster(node("a", "", 100))
			var works atomic.Bool
			c := newBare(t, resolver(func(ctx context.Context) ([]discovery.Node, error) {
				if !works.Load() {
					accident()
				}
				return cl.List(ctx)
			}), client.WithLinks(cl.dial))
			time.Sleep(time.Second)
			works.Store(true)
			calls(t, c, 3)
			if err := c.Close(t.Context()); err != nil {
				t.Error(err)
			}
		})
	})
	t.Run("log handler", func(t *testing.T) {
		bubble(t, func(t *testing.T) {
			cl := newCluster(node("a", "", 100))
			cl.set(nil, errRegistry)
			c := newBare(t, cl, client.WithLinks(cl.dial), client.WithLogger(slog.New(fragileHandler{slog.DiscardHandler, accident})))
			time.Sleep(time.Second)
			cl.set([]discovery.Node{node("a", "", 100)}, nil)
			calls(t, c, 3)
			if err := c.Close(t.Context()); err != nil {
				t.Error(err)
			}
		})
	})
	t.Run("dialer", func(t *testing.T) {
		bubble(t, func(t *testing.T) {
			var works atomic.Bool
			w := &wires{dialled: make(chan net.Conn), closed: make(chan struct{})}
			c := overWires(t, client.WithDialer(func(ctx context.Context, address string) (net.Conn, error) {
				if !works.Load() {
					accident()
				}
				return w.dial(ctx, address)
			}))
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			if _, err := c.Next(ctx, "order"); err == nil || !strings.Contains(err.Error(), "WithDialer") {
				t.Errorf("a call ended with %v", err)
			}
			if err := c.Close(t.Context()); err != nil {
				t.Error(err)
			}
		})
	})
}

// fragileHandler is a log handler that panics.
type fragileHandler struct {
	slog.Handler

	accident func()
}

// Enabled implements slog.Handler.
func (h fragileHandler) Enabled(context.Context, slog.Level) bool { return true }

// Handle implements slog.Handler.
func (h fragileHandler) Handle(context.Context, slog.Record) error { h.accident(); return nil }
