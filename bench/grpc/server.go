package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"sync/atomic"

	"google.golang.org/grpc"

	"github.com/leaf-idgen/leaf/bench/side"
	"github.com/leaf-idgen/leaf/internal/server/grpcd"
	"github.com/leaf-idgen/leaf/leafpb"
)

// serve runs a server until stdin ends, so that it does not outlive its parent. It
// prints its address first.
func serve(name string, stdout io.Writer, stdin io.Reader) error {
	switch name {
	case "leaf":
		return serveLeaf(stdout, stdin)
	case "bare":
		return serveBare(stdout, stdin)
	}
	return fmt.Errorf("no server %q", name)
}

// serveLeaf is the server as users get it, on a store that costs nothing.
func serveLeaf(stdout io.Writer, stdin io.Reader) (err error) {
	access, stop, err := side.Engine()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, stop()) }()
	s, err := grpcd.New("127.0.0.1:0", grpcd.Config{Access: access})
	if err != nil {
		return err
	}
	return side.Serve(s, s.Addr(), stdout, stdin)
}

// serveBare is grpc-go with nothing set.
func serveBare(stdout io.Writer, stdin io.Reader) error {
	ln, err := new(net.ListenConfig).Listen(context.Background(), "tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	s := bareServer{grpc.NewServer(), ln}
	leafpb.RegisterLeafServiceServer(s, &bare{})
	return side.Serve(s, ln.Addr(), stdout, stdin)
}

type bareServer struct {
	*grpc.Server
	ln net.Listener
}

func (s bareServer) Serve() error { return s.Server.Serve(s.ln) }

func (s bareServer) Shutdown(context.Context) error {
	s.Stop()
	return nil
}

// bare is leaf.v1.LeafService with nothing behind it.
type bare struct {
	leafpb.UnimplementedLeafServiceServer
	last atomic.Int64
}

func (b *bare) Next(_ context.Context, req *leafpb.NextRequest) (*leafpb.NextResponse, error) {
	return &leafpb.NextResponse{Ranges: b.take(req.GetCount())}, nil
}

func (b *bare) Stream(stream grpc.BidiStreamingServer[leafpb.StreamRequest, leafpb.StreamResponse]) error {
	for {
		req, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if err := stream.Send(&leafpb.StreamResponse{Ranges: b.take(req.GetCount())}); err != nil {
			return err
		}
	}
}

func (b *bare) take(count int32) []*leafpb.Range {
	n := int64(max(count, 1))
	hi := b.last.Add(n) + 1
	return []*leafpb.Range{{Lo: hi - n, Hi: hi}}
}
