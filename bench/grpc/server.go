package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"sync/atomic"

	"google.golang.org/grpc"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/driver/datadir"
	"github.com/leaf-idgen/leaf/driver/memory"
	"github.com/leaf-idgen/leaf/leafpb"
	"github.com/leaf-idgen/leaf/segment"
	"github.com/leaf-idgen/leaf/server/grpcd"
)

const tag = "bench"

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

// serveLeaf is the server as users get it, on a store that costs nothing. The step is
// large: a load per million requests is not what is measured here.
func serveLeaf(stdout io.Writer, stdin io.Reader) (err error) {
	ctx := context.Background()
	folder, err := os.MkdirTemp("", "leaf-bench-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(folder)) }()
	dir, err := datadir.Open(folder)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, dir.Close()) }()
	store := memory.New()
	if err := store.Create(ctx, segment.NewRow{Tag: tag, Start: 1, Step: segment.MaxStep}); err != nil {
		return err
	}
	router, err := segment.NewRouter([]segment.NamedStore{{Name: "default", Store: store}}, nil)
	if err != nil {
		return err
	}
	engine, err := segment.New(router, dir, segment.Config{})
	if err != nil {
		return err
	}
	if err := engine.Start(ctx); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, engine.Close(ctx)) }()

	s, err := grpcd.New("127.0.0.1:0", grpcd.Config{Access: leaf.Anyone(engine, nil)})
	if err != nil {
		return err
	}
	served := make(chan error, 1)
	go func() { served <- s.Serve() }()
	fmt.Fprintln(stdout, s.Addr())
	_, _ = io.Copy(io.Discard, stdin)
	return errors.Join(s.Shutdown(ctx), <-served)
}

// serveBare is grpc-go with nothing set.
func serveBare(stdout io.Writer, stdin io.Reader) error {
	ln, err := new(net.ListenConfig).Listen(context.Background(), "tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	s := grpc.NewServer()
	leafpb.RegisterLeafServiceServer(s, &bare{})
	served := make(chan error, 1)
	go func() { served <- s.Serve(ln) }()
	fmt.Fprintln(stdout, ln.Addr())
	_, _ = io.Copy(io.Discard, stdin)
	s.Stop()
	return <-served
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
