package client_test

import (
	"context"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/test/bufconn"

	"github.com/leaf-idgen/leaf/client"
)

// TestKeepAlive: the other end goes without a word, and an interceptor that does not return
// keeps the health checks from asking it. With WithKeepAlive the client ends the connection
// soon after that time, without it not.
func TestKeepAlive(t *testing.T) {
	for _, c := range []struct {
		name string
		opts []client.Option
		ends bool
	}{
		{"with", []client.Option{client.WithKeepAlive(10 * time.Second)}, true},
		{"without", nil, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				listener := bufconn.Listen(1 << 16)
				server := grpc.NewServer() // it knows no service: a health check passes all the same
				go func() { _ = server.Serve(listener) }()
				defer server.Stop()
				var holds atomic.Bool
				release := make(chan struct{})
				var conn atomic.Pointer[silentConn]
				newClient(t, client.Addresses("a:1"), append(c.opts,
					client.WithDialer(func(ctx context.Context, _ string) (net.Conn, error) {
						inner, err := listener.DialContext(ctx)
						c := &silentConn{Conn: inner, closed: make(chan struct{})}
						if err != nil || !conn.CompareAndSwap(nil, c) {
							return inner, err
						}
						return c, nil
					}),
					client.WithStreamInterceptors(func(ctx context.Context, d *grpc.StreamDesc, cc *grpc.ClientConn, method string, open grpc.Streamer, opts ...grpc.CallOption) (grpc.ClientStream, error) {
						if holds.Load() {
							<-release
						}
						return open(ctx, d, cc, method, opts...)
					}))...)
				time.Sleep(5 * time.Second)
				holds.Store(true)
				conn.Load().silent.Store(true)
				defer close(release)
				select {
				case <-conn.Load().closed:
					if !c.ends {
						t.Error("the connection ended by itself: the test no longer shows what keep-alive does")
					}
				case <-time.After(15 * time.Second):
					if c.ends {
						t.Error("the connection is open after 15 s of silence")
					}
				}
			})
		})
	}
}

// silentConn is a connection whose other end may go without a word.
type silentConn struct {
	net.Conn

	silent atomic.Bool
	once   sync.Once
	closed chan struct{}
}

// Write implements net.Conn.
func (c *silentConn) Write(b []byte) (int, error) {
	if c.silent.Load() {
		return len(b), nil
	}
	return c.Conn.Write(b)
}

// Close implements net.Conn.
func (c *silentConn) Close() error {
	c.once.Do(func() { close(c.closed) })
	return c.Conn.Close()
}
