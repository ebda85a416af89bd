package client_test

import (
	"context"
	"log/slog"
	"sync/atomic"
	"testing"

	"google.golang.org/grpc"

	"github.com/leaf-idgen/leaf/client"
	"github.com/leaf-idgen/leaf/client/leaftest"
)

// fragile is a stream of an application's interceptor, which panics once.
type fragile struct {
	grpc.ClientStream

	early, late *atomic.Bool
}

func (f fragile) SendMsg(m any) error {
	if f.early.CompareAndSwap(true, false) {
		panic("before the request is sent")
	}
	err := f.ClientStream.SendMsg(m)
	if f.late.CompareAndSwap(true, false) {
		panic("after the request was sent")
	}
	return err
}

// TestInterceptorPanics: a panic of the application's interceptor, in the goroutine of a
// caller that may recover, ends one stream. The tag goes on, and so does Close.
func TestInterceptorPanics(t *testing.T) {
	for _, name := range []string{"before the request is sent", "after the request was sent"} {
		t.Run(name, func(t *testing.T) {
			s := leaftest.New(t, "order")
			var early, late atomic.Bool
			c := s.Client(client.WithUniquenessCheck(), client.WithLogger(slog.New(slog.DiscardHandler)),
				client.WithStreamInterceptors(func(ctx context.Context, d *grpc.StreamDesc, cc *grpc.ClientConn, method string, open grpc.Streamer, opts ...grpc.CallOption) (grpc.ClientStream, error) {
					stream, err := open(ctx, d, cc, method, opts...)
					if err == nil && d.ClientStreams {
						stream = fragile{stream, &early, &late}
					}
					return stream, err
				}))
			calls(t, c, 2)
			for range 5 {
				early.Store(name[0] == 'b')
				late.Store(name[0] == 'a')
				calls(t, c, 2)
				if early.Load() || late.Load() {
					t.Error("the interceptor did not panic")
				}
			}
			if err := c.Close(t.Context()); err != nil {
				t.Errorf("Close: %v", err)
			}
		})
	}
}
