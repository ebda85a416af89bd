package client_test

import (
	"context"
	"log/slog"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc"

	"github.com/leaf-idgen/leaf/client"
	"github.com/leaf-idgen/leaf/client/leaftest"
	"github.com/leaf-idgen/leaf/leafpb"
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

// keeping is a stream of an application's interceptor that keeps the messages, as tracing
// does, and that says once that it has received an answer which it has not.
type keeping struct {
	grpc.ClientStream

	t        *testing.T
	kept     *[]*leafpb.StreamRequest
	second   chan struct{} // closed when the second request was sent
	received *int
}

func (k keeping) SendMsg(m any) error {
	*k.kept = append(*k.kept, m.(*leafpb.StreamRequest))
	err := k.ClientStream.SendMsg(m)
	switch len(*k.kept) {
	case 2:
		close(k.second)
	case 3:
		k.t.Error("a request on a stream that has lost an answer: the next answer is not its own")
	}
	return err
}

func (k keeping) RecvMsg(m any) error {
	switch *k.received++; *k.received {
	case 2:
		<-k.second
		time.Sleep(time.Millisecond) // until the stream waits for the next request
		return nil
	case 3:
		time.Sleep(time.Second) // until it has one
	}
	return k.ClientStream.RecvMsg(m)
}

// TestInterceptorLosesAnswer: the interceptor catches a panic of its own, say, and says that
// all is well. No caller gets the answer before for a second time, or that of another tag.
func TestInterceptorLosesAnswer(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var kept []*leafpb.StreamRequest
		streams, received := 0, 0
		c := overWires(t, client.WithStreamInterceptors(func(ctx context.Context, d *grpc.StreamDesc, cc *grpc.ClientConn, method string, open grpc.Streamer, opts ...grpc.CallOption) (grpc.ClientStream, error) {
			stream, err := open(ctx, d, cc, method, opts...)
			if err == nil && d.ClientStreams {
				if streams++; streams == 1 {
					stream = keeping{stream, t, &kept, make(chan struct{}), &received}
				}
			}
			return stream, err
		}))
		seen := map[int64]bool{}
		for _, tag := range []string{"order", "user", "user", "user"} {
			id, err := c.Next(t.Context(), tag)
			if err != nil || seen[id] {
				t.Errorf("Next(%q) = %d, %v; there were %v", tag, id, err, seen)
			}
			seen[id] = true
			time.Sleep(time.Millisecond) // until the stream is idle
		}
		for i, want := range []string{"order", "user"} {
			if got := kept[i].GetTag(); got != want {
				t.Errorf("the request that the interceptor has kept is of %q now, and was of %q", got, want)
			}
		}
		if err := c.Close(t.Context()); err != nil {
			t.Error(err)
		}
	})
}
