package client_test

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/health"
	"google.golang.org/grpc/health/grpc_health_v1"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/client"
	"github.com/leaf-idgen/leaf/leafpb"
)

// counter is an Issuer that gives one number after the other, whatever the tag.
type counter struct{ last atomic.Int64 }

func (c *counter) Next(context.Context, string) (int64, error) { return c.last.Add(1), nil }

func (c *counter) NextN(_ context.Context, _ string, n int) ([]leaf.Range, error) {
	hi := c.last.Add(int64(n)) + 1
	return []leaf.Range{{Lo: hi - int64(n), Hi: hi}}, nil
}

// server is a node of its own making over real sockets.
type server struct {
	leafpb.UnimplementedLeafServiceServer
	segment leaf.Issuer
	health  *health.Server
	grpc    *grpc.Server
	addr    string
	raw     atomic.Pointer[leafpb.StreamResponse] // answered in place of IDs

	sequence func(context.Context, *leafpb.SequenceRequest) (*leafpb.SequenceResponse, error) // nil: the node is of a version without sequences
}

func (s *server) Sequence(ctx context.Context, request *leafpb.SequenceRequest) (*leafpb.SequenceResponse, error) {
	if s.sequence == nil {
		return s.UnimplementedLeafServiceServer.Sequence(ctx, request)
	}
	return s.sequence(ctx, request)
}

func (s *server) Stream(stream leafpb.LeafService_StreamServer) error {
	for {
		r, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		if raw := s.raw.Load(); raw != nil {
			if err := stream.Send(raw); err != nil {
				return err
			}
			continue
		}
		reply := &leafpb.StreamResponse{}
		ranges, err := s.segment.NextN(stream.Context(), r.GetTag(), int(max(r.GetCount(), 1)))
		if err != nil {
			class := leaf.ClassOf(err)
			reply.Error = &leafpb.Error{Code: class.Code, Message: err.Error(), Retryable: class.Retryable, RetryAfterMs: leaf.RetryAfter(err).Milliseconds()}
		}
		for _, x := range ranges {
			reply.Ranges = append(reply.Ranges, &leafpb.Range{Lo: x.Lo, Hi: x.Hi})
		}
		if err := stream.Send(reply); err != nil {
			return err
		}
	}
}

// startServer serves issuer until the test ends.
func startServer(t testing.TB, issuer leaf.Issuer) *server {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &server{segment: issuer, health: health.NewServer(), grpc: grpc.NewServer(), addr: l.Addr().String()}
	leafpb.RegisterLeafServiceServer(s.grpc, s)
	grpc_health_v1.RegisterHealthServer(s.grpc, s.health)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		if err := s.grpc.Serve(l); err != nil {
			t.Error(err)
		}
	}()
	t.Cleanup(func() { s.grpc.Stop(); <-ended })
	return s
}

func newClient(t testing.TB, r client.Resolver, opts ...client.Option) *client.Client {
	t.Helper()
	quiet := client.WithLogger(slog.New(slog.DiscardHandler))
	c, err := client.New(r, append([]client.Option{quiet}, opts...)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		if err := c.Close(ctx); err != nil {
			t.Error(err)
		}
	})
	return c
}
