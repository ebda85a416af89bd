package bench_test

import (
	"context"
	"errors"
	"io"
	"net"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/leaf-idgen/leaf/client"
	"github.com/leaf-idgen/leaf/leafpb"
)

// bareNode answers streams with numbers from one counter and does nothing else: the
// floor under every client.
type bareNode struct {
	leafpb.UnimplementedLeafServiceServer
	last atomic.Int64
}

func (n *bareNode) Stream(stream leafpb.LeafService_StreamServer) error {
	var request leafpb.StreamRequest
	span := &leafpb.Range{}
	reply := &leafpb.StreamResponse{Ranges: []*leafpb.Range{span}}
	for {
		if err := stream.RecvMsg(&request); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		span.Hi = n.last.Add(int64(request.Count)) + 1
		span.Lo = span.Hi - int64(request.Count)
		if err := stream.SendMsg(reply); err != nil {
			return err
		}
	}
}

// newBareNode returns its address.
func newBareNode(b testing.TB) string {
	b.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	s := grpc.NewServer()
	leafpb.RegisterLeafServiceServer(s, &bareNode{})
	go func() {
		if err := s.Serve(l); err != nil {
			b.Error(err)
		}
	}()
	b.Cleanup(s.Stop)
	return l.Addr().String()
}

// BenchmarkGRPCPingPong is one request after the other on one bare stream.
func BenchmarkGRPCPingPong(b *testing.B) {
	stream := bareStream(b, newBareNode(b))
	request, reply := &leafpb.StreamRequest{Tag: "order", Count: 1}, &leafpb.StreamResponse{}
	b.ReportAllocs()
	for b.Loop() {
		if err := pingPong(stream, request, reply); err != nil {
			b.Fatal(err)
		}
	}
}

// bareStream opens a stream to a node.
func bareStream(t testing.TB, address string) leafpb.LeafService_StreamClient {
	t.Helper()
	cc, err := grpc.NewClient("passthrough:///"+address, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cc.Close() })
	stream, err := leafpb.NewLeafServiceClient(cc).Stream(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return stream
}

// pingPong sends a request and waits for its reply.
func pingPong(stream leafpb.LeafService_StreamClient, request *leafpb.StreamRequest, reply *leafpb.StreamResponse) error {
	if err := stream.Send(request); err != nil {
		return err
	}
	return stream.RecvMsg(reply)
}

// TestLoneCallerAllocates: a call of a lone caller makes few objects more than a request
// and its reply on a bare stream: no goroutine of its own, and no error that is not returned.
func TestLoneCallerAllocates(t *testing.T) {
	address := newBareNode(t)
	stream := bareStream(t, address)
	request, reply := &leafpb.StreamRequest{Tag: "order", Count: 1}, &leafpb.StreamResponse{}
	bare := testing.AllocsPerRun(2000, func() {
		if err := pingPong(stream, request, reply); err != nil {
			t.Fatal(err)
		}
	})
	ids, err := client.New(client.Addresses(address))
	if err != nil {
		t.Fatal(err)
	}
	defer ids.Close(context.Background())
	whole := testing.AllocsPerRun(2000, func() {
		if _, err := ids.Next(context.Background(), "order"); err != nil {
			t.Fatal(err)
		}
	})
	t.Logf("%v for a bare request, %v for a call", bare, whole)
	if whole > bare+16 {
		t.Errorf("a call makes %v objects, a bare request %v", whole, bare)
	}
}

// BenchmarkClientNext is the client on one connection to a bare node in the same
// process, without a cache: callers that run at the same time share requests. Callers
// with a context that can end, as most in real programs, wait with a select.
func BenchmarkClientNext(b *testing.B) {
	background := func() (context.Context, context.CancelFunc) { return context.Background(), func() {} }
	cancelled := func() (context.Context, context.CancelFunc) { return context.WithCancel(context.Background()) }
	for _, c := range []struct {
		goroutines int
		name       string
		context    func() (context.Context, context.CancelFunc)
	}{
		{1, "", background},
		{64, "", background},
		{1000, "", background},
		{1000, "/contexts that can end", cancelled},
	} {
		b.Run("goroutines="+strconv.Itoa(c.goroutines)+c.name, func(b *testing.B) {
			ids, err := client.New(client.Addresses(newBareNode(b)))
			if err != nil {
				b.Fatal(err)
			}
			defer ids.Close(context.Background())
			if _, err := ids.Next(context.Background(), "order"); err != nil {
				b.Fatal(err)
			}
			b.ReportAllocs()
			b.ResetTimer()
			left := atomic.Int64{}
			left.Store(int64(b.N))
			var callers sync.WaitGroup
			for range c.goroutines {
				callers.Go(func() {
					ctx, cancel := c.context()
					defer cancel()
					for left.Add(-1) >= 0 {
						if _, err := ids.Next(ctx, "order"); err != nil {
							b.Error(err)
							return
						}
					}
				})
			}
			callers.Wait()
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "ids/s")
			requests := ids.Stats().Nodes[0].Requests
			b.ReportMetric(float64(b.N)/float64(requests), "ids/request")
		})
	}
}
