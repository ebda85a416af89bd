package client_test

import (
	"context"
	"errors"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/client"
	"github.com/leaf-idgen/leaf/client/cache"
	"github.com/leaf-idgen/leaf/client/leaftest"
)

// TestHooks: what an application hangs into a client is called.
func TestHooks(t *testing.T) {
	s := leaftest.New(t, "order")
	var dialled, streams atomic.Int64
	var began []client.Call
	var ended []error
	c := s.Client(
		client.WithDialer(func(ctx context.Context, address string) (net.Conn, error) {
			dialled.Add(1)
			return new(net.Dialer).DialContext(ctx, "tcp", address)
		}),
		client.WithStreamInterceptors(func(ctx context.Context, d *grpc.StreamDesc, cc *grpc.ClientConn, method string, open grpc.Streamer, opts ...grpc.CallOption) (grpc.ClientStream, error) {
			streams.Add(1)
			return open(ctx, d, cc, method, opts...)
		}),
		client.WithKeepAlive(time.Minute),
		client.WithTrace(func(_ context.Context, call client.Call) func(error) {
			began = append(began, call)
			return func(err error) { ended = append(ended, err) }
		}),
	)
	if err := c.WaitReady(t.Context()); err != nil {
		t.Fatal(err)
	}
	calls(t, c, 1)
	if _, err := c.Snowflake().NextN(t.Context(), "x", 5); err != nil {
		t.Error(err)
	}
	_, unknown := c.Next(t.Context(), "unknown")
	if diff := cmp.Diff([]client.Call{{Tag: "order", Count: 1}, {Tag: "x", Snowflake: true, Count: 5}, {Tag: "unknown", Count: 1}}, began); diff != "" {
		t.Errorf("begun (-want +got):\n%s", diff)
	}
	if len(ended) != 3 || ended[0] != nil || ended[1] != nil || !errors.Is(ended[2], leaf.ErrUnknownTag) || !errors.Is(unknown, leaf.ErrUnknownTag) {
		t.Errorf("ended with %v", ended)
	}
	if dialled.Load() != 1 || streams.Load() < 2 {
		t.Errorf("%d connections, %d streams", dialled.Load(), streams.Load())
	}
}

// TestWaitReady returns when a node serves, and not before.
func TestWaitReady(t *testing.T) {
	bubble(t, func(t *testing.T) {
		cl := newCluster(node("a", "", 100), node("b", "", 100))
		cl.nodes["a"].down, cl.nodes["b"].draining = true, true
		c := cl.client(t)
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		if err := c.WaitReady(ctx); !errors.Is(err, leaf.ErrNotReady) || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("WaitReady = %v with no node that serves", err)
		}
		cl.nodes["b"].set(func(b *fake) { b.draining = false })
		start := time.Now()
		if err := c.WaitReady(t.Context()); err != nil || time.Since(start) > 3*time.Second {
			t.Errorf("WaitReady = %v after %v", err, time.Since(start))
		}
	})
}

// TestOptionsAreUsedAgain: two clients may be made of the same options at the same time.
func TestOptionsAreUsedAgain(t *testing.T) {
	opts := []client.Option{client.WithCache(cache.Config{})}
	var makers sync.WaitGroup
	for range 4 {
		makers.Go(func() {
			c, err := client.New(client.Addresses("127.0.0.1:1"), opts...)
			if err != nil {
				t.Error(err)
				return
			}
			if err := c.Close(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
	makers.Wait()
}

// TestCancelled: a call that its caller has cancelled gets the context's error and no
// class, with a cache and without.
func TestCancelled(t *testing.T) {
	for _, c := range []struct {
		name string
		opts []client.Option
		fail bool // the node says that it is not ready
	}{
		{"no answer", nil, false},
		{"not ready", nil, true},
		{"no answer, cache", []client.Option{client.WithCache(cache.Config{})}, false},
		{"not ready, cache", []client.Option{client.WithCache(cache.Config{})}, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				cl := newCluster(node("a", "", 100))
				if c.fail {
					cl.refuse("a", leaf.ErrNotReady, func(string) bool { return true })
				} else {
					cl.nodes["a"].mute = true
				}
				leafClient := cl.client(t, c.opts...)
				ctx, cancel := context.WithCancel(t.Context())
				time.AfterFunc(time.Second, cancel)
				_, err := leafClient.Next(ctx, "order")
				if !errors.Is(err, context.Canceled) || leaf.ClassOf(err).Err != nil {
					t.Errorf("%v of class %q", err, leaf.ClassOf(err).Code)
				}
			})
		})
	}
}
