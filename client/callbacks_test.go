package client_test

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/health"
	"google.golang.org/grpc/health/grpc_health_v1"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/client"
	"github.com/leaf-idgen/leaf/discovery"
	"github.com/leaf-idgen/leaf/leafpb"
)

// wires is a listener without a network: gRPC in a bubble.
type wires struct {
	dialled chan net.Conn
	closed  chan struct{}
	once    sync.Once
}

func (w *wires) Accept() (net.Conn, error) {
	select {
	case c := <-w.dialled:
		return c, nil
	case <-w.closed:
		return nil, net.ErrClosed
	}
}

func (w *wires) Close() error { w.once.Do(func() { close(w.closed) }); return nil }

func (w *wires) Addr() net.Addr { return &net.UnixAddr{Name: "wires"} }

func (w *wires) dial(ctx context.Context, _ string) (net.Conn, error) {
	here, there := net.Pipe()
	select {
	case w.dialled <- there:
		return here, nil
	case <-w.closed:
		return nil, net.ErrClosed
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// overWires returns a client of one healthy node, over gRPC on connections in memory, so that
// the test can run in a bubble of testing/synctest. The caller closes it.
func overWires(t *testing.T, opts ...client.Option) *client.Client {
	t.Helper()
	return overWiresTo(t, &server{segment: &counter{}}, opts...)
}

// overWiresTo is overWires with a node of the test's own.
func overWiresTo(t *testing.T, s *server, opts ...client.Option) *client.Client {
	t.Helper()
	w := &wires{dialled: make(chan net.Conn), closed: make(chan struct{})}
	s.health, s.grpc = health.NewServer(), grpc.NewServer()
	leafpb.RegisterLeafServiceServer(s.grpc, s)
	grpc_health_v1.RegisterHealthServer(s.grpc, s.health)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		if err := s.grpc.Serve(w); err != nil {
			t.Error(err)
		}
	}()
	t.Cleanup(func() { s.grpc.Stop(); <-ended })
	c, err := client.New(client.Addresses("node:1"), append([]client.Option{
		client.WithDialer(w.dial), client.WithPlainToken(), client.WithLogger(slog.New(slog.DiscardHandler)),
	}, opts...)...)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// healthy fails the test if the client blames a node.
func healthy(t *testing.T, c *client.Client) {
	t.Helper()
	for _, n := range c.Stats().Nodes {
		if n.Failures > 0 || n.Ejections > 0 {
			t.Errorf("%d failures and %d ejections of a healthy node: %v", n.Failures, n.Ejections, n.Err)
		}
	}
}

// hook is a function of the application, in the place that is named: what it does is up
// to do.
func hook(place string, do func(ctx context.Context) error) client.Option {
	if place == "token" {
		return client.WithTokenFunc(func(ctx context.Context) (string, error) { return "token", do(ctx) })
	}
	return client.WithStreamInterceptors(func(ctx context.Context, d *grpc.StreamDesc, cc *grpc.ClientConn, method string, open grpc.Streamer, opts ...grpc.CallOption) (grpc.ClientStream, error) {
		if place == "open" {
			if err := do(ctx); err != nil {
				return nil, err
			}
		}
		stream, err := open(ctx, d, cc, method, opts...)
		if err == nil {
			stream = hooked{stream, place, do}
		}
		return stream, err
	})
}

type hooked struct {
	grpc.ClientStream

	place string
	do    func(context.Context) error
}

func (h hooked) SendMsg(m any) error {
	if h.place == "send" {
		if err := h.do(h.Context()); err != nil {
			return err
		}
	}
	return h.ClientStream.SendMsg(m)
}

func (h hooked) RecvMsg(m any) error {
	err := h.ClientStream.RecvMsg(m)
	if h.place == "receive" && err == nil {
		err = h.do(h.Context())
	}
	return err
}

// places are where a function of the application stands between a call and its node.
var places = []string{"token", "open", "send", "receive"}

// nameOf is the option that the error of a call names.
func nameOf(place string) string {
	if place == "token" {
		return "WithTokenFunc"
	}
	return "WithStreamInterceptors"
}

// TestCallbackHangs: a function of the application that does not return holds no caller
// beyond its deadline, and does not count against the node. The error names the function.
// Calls go on when it returns.
func TestCallbackHangs(t *testing.T) {
	for _, place := range places {
		for _, deaf := range []bool{false, true} {
			name := place + " until its context ends"
			if deaf {
				name = place + " whatever its context says"
			}
			t.Run(name, func(t *testing.T) {
				bubble(t, func(t *testing.T) {
					release := make(chan struct{})
					c := overWires(t, hook(place, func(ctx context.Context) error {
						if deaf {
							ctx = context.Background()
						}
						select {
						case <-release:
							return nil
						case <-ctx.Done():
							return ctx.Err()
						}
					}))
					for range 20 {
						start := time.Now()
						ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
						_, err := c.Next(ctx, "order")
						cancel()
						if took := time.Since(start); took > 310*time.Millisecond {
							t.Errorf("a call took %v", took)
						}
						if err == nil || !strings.Contains(err.Error(), nameOf(place)) {
							t.Errorf("a call ended with %v", err)
						}
					}
					healthy(t, c)
					close(release)
					time.Sleep(10 * time.Second)
					calls(t, c, 3)
					healthy(t, c)
					if err := c.Close(t.Context()); err != nil {
						t.Error(err)
					}
				})
			})
		}
	}
}

// TestInterceptorUsesUpTheTime: an interceptor keeps each health check until the time of that is
// over, and then passes it on. That gRPC fails is no fault of the node.
func TestInterceptorUsesUpTheTime(t *testing.T) {
	for _, place := range []string{"open", "send"} {
		t.Run(place, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				var checks atomic.Int64
				c := overWires(t, hook(place, func(ctx context.Context) error {
					if _, isCheck := ctx.Deadline(); isCheck { // a stream of requests has none
						checks.Add(1)
						<-ctx.Done()
					}
					return nil
				}))
				for range 6 {
					calls(t, c, 1)
					time.Sleep(10 * time.Second)
				}
				healthy(t, c)
				if checks.Load() < 3 {
					t.Errorf("%d health checks", checks.Load())
				}
				if err := c.Close(t.Context()); err != nil {
					t.Error(err)
				}
			})
		})
	}
}

// TestInterceptorHangsOnce: an interceptor does not return from two calls, one of them for a
// health check. All later calls return. The client uses the node again.
func TestInterceptorHangsOnce(t *testing.T) {
	bubble(t, func(t *testing.T) {
		release := make(chan struct{})
		var hung atomic.Int64
		c := overWires(t, hook("open", func(context.Context) error {
			if hung.Add(1) <= 2 {
				<-release
			}
			return nil
		}))
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		defer cancel()
		if id, err := c.Next(ctx, "order"); err == nil {
			t.Errorf("%d although the interceptor hangs", id)
		}
		time.Sleep(15 * time.Second)
		calls(t, c, 3)
		healthy(t, c)
		close(release)
		if err := c.Close(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

// TestInterceptorPassesAnotherContext: a node that is gone is ejected, although an interceptor
// passes a context of its own on.
func TestInterceptorPassesAnotherContext(t *testing.T) {
	bubble(t, func(t *testing.T) {
		refused := func(context.Context, string) (net.Conn, error) { return nil, errors.New("refused") }
		c := newBare(t, client.Addresses("node:1"), client.WithDialer(refused),
			client.WithStreamInterceptors(func(_ context.Context, d *grpc.StreamDesc, cc *grpc.ClientConn, method string, open grpc.Streamer, opts ...grpc.CallOption) (grpc.ClientStream, error) {
				return open(context.Background(), d, cc, method, opts...)
			}))
		for range 10 {
			ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
			_, err := c.Next(ctx, "order")
			cancel()
			if err == nil || strings.Contains(err.Error(), "WithStreamInterceptors") {
				t.Errorf("a call ended with %v", err)
			}
		}
		if n := c.Stats().Nodes[0]; n.Ejections == 0 {
			t.Errorf("the node is %v after %d failures", n.State, n.Failures)
		}
		if err := c.Close(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

// TestTokenHangs: a token function that does not return fails the calls that have the
// time with its own error.
func TestTokenHangs(t *testing.T) {
	bubble(t, func(t *testing.T) {
		release := make(chan struct{})
		var asked, running atomic.Int64
		c := overWires(t, client.WithTimeout(time.Minute), client.WithTokenFunc(func(context.Context) (string, error) {
			asked.Add(1)
			running.Add(1)
			defer running.Add(-1)
			<-release
			return "token", nil
		}))
		for range 3 {
			start := time.Now()
			_, err := c.Next(t.Context(), "order")
			if !errors.Is(err, leaf.ErrUnauthenticated) || !strings.Contains(err.Error(), "WithTokenFunc") || time.Since(start) > 6*time.Second {
				t.Errorf("after %v: %v", time.Since(start), err)
			}
		}
		if asked.Load() > 1 {
			t.Errorf("%d calls of the function hang", running.Load())
		}
		healthy(t, c)
		close(release)
		calls(t, c, 3)
		if err := c.Close(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

// TestCloseWhileACallbackHangs: Close waits for a function of the application as long as
// its context allows and a second more.
func TestCloseWhileACallbackHangs(t *testing.T) {
	for _, place := range append([]string{"resolver"}, places...) {
		t.Run(place, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				release := make(chan struct{})
				var c *client.Client
				if place == "resolver" {
					c = newBare(t, resolver(func(context.Context) ([]discovery.Node, error) { <-release; return nil, errRegistry }))
				} else {
					c = overWires(t, hook(place, func(context.Context) error { <-release; return nil }))
				}
				ctx, cancel := context.WithTimeout(t.Context(), time.Second)
				defer cancel()
				if id, err := c.Next(ctx, "order"); err == nil {
					t.Errorf("%d although the function hangs", id)
				}
				start := time.Now()
				ctx, cancel = context.WithTimeout(t.Context(), time.Second)
				defer cancel()
				if err := c.Close(ctx); !errors.Is(err, context.DeadlineExceeded) || time.Since(start) > 3*time.Second {
					t.Errorf("Close: %v after %v", err, time.Since(start))
				}
				close(release)
				if err := c.Close(t.Context()); err != nil {
					t.Errorf("Close after the function has returned: %v", err)
				}
			})
		})
	}
}

// TestOneSendHangs: a request that an interceptor does not send holds up no other caller of
// its tag.
func TestOneSendHangs(t *testing.T) {
	bubble(t, func(t *testing.T) {
		release := make(chan struct{})
		var sent atomic.Int64
		c := overWires(t, hook("send", func(context.Context) error {
			if sent.Add(1) == 3 { // the first is a health check
				select {
				case <-release:
				case <-time.After(10 * time.Second): // for a client that waits here
				}
			}
			return nil
		}))
		calls(t, c, 1)
		held := make(chan error, 1)
		go func() {
			_, err := c.Next(t.Context(), "order")
			held <- err
		}()
		time.Sleep(100 * time.Millisecond)
		if sent.Load() != 3 {
			t.Fatalf("%d sent", sent.Load())
		}
		start := time.Now()
		calls(t, c, 3)
		if took := time.Since(start); took > 500*time.Millisecond {
			t.Errorf("calls of the same tag took %v", took)
		}
		if err := <-held; !errors.Is(err, leaf.ErrNotReady) {
			t.Errorf("the call that was not sent: %v", err)
		}
		close(release)
		if err := c.Close(t.Context()); err != nil {
			t.Error(err)
		}
	})
}
