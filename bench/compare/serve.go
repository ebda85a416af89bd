package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"sync/atomic"

	"google.golang.org/grpc"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/bench/internal/side"
	"github.com/leaf-idgen/leaf/internal/server/grpcd"
	"github.com/leaf-idgen/leaf/internal/server/httpd"
	"github.com/leaf-idgen/leaf/internal/server/respd"
	"github.com/leaf-idgen/leaf/leafpb"
)

// makers make our servers. Leaf is the server as users get it, on a store that costs
// nothing.
var makers = map[string]func(ln net.Listener, access leaf.Access) (side.Server, error){
	"http leaf": func(ln net.Listener, access leaf.Access) (side.Server, error) {
		return httpd.New(ln, httpd.Config{Access: access})
	},
	"http bare-fast": func(ln net.Listener, _ leaf.Access) (side.Server, error) { return newBareFast(ln) },
	"http bare-net":  func(ln net.Listener, _ leaf.Access) (side.Server, error) { return newBareNet(ln), nil },
	"resp leaf": func(ln net.Listener, access leaf.Access) (side.Server, error) {
		return respd.New(ln, respd.Config{Access: access})
	},
	"grpc leaf": func(ln net.Listener, access leaf.Access) (side.Server, error) {
		return grpcd.New(ln, grpcd.Config{Access: access})
	},
	"grpc bare": func(ln net.Listener, _ leaf.Access) (side.Server, error) { return newBareGRPC(ln), nil },
}

// serve runs one of our servers until stdin ends, so that it does not outlive its parent.
// It prints its address first.
func serve(protocol, name string, stdout io.Writer, stdin io.Reader) (err error) {
	newServer := makers[protocol+" "+name]
	if newServer == nil {
		return fmt.Errorf("no server %q of protocol %q", name, protocol)
	}
	access, stop, err := side.Engine()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, stop()) }()
	ln, err := new(net.ListenConfig).Listen(context.Background(), "tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	s, err := newServer(ln, access)
	if err != nil {
		return errors.Join(err, ln.Close())
	}
	return side.Serve(s, ln.Addr(), stdout, stdin)
}

func newBareFast(ln net.Listener) (side.Server, error) {
	var id atomic.Int64
	return httpd.Mount(ln, httpd.Config{}, http.NotFoundHandler(),
		func(leaf.Credentials) (httpd.FastHandler, error) {
			return func(_ context.Context, _ httpd.Mode, _ string, body []byte) ([]byte, error) {
				return strconv.AppendInt(body, id.Add(1), 10), nil
			}, nil
		})
}

func newBareNet(ln net.Listener) side.Server {
	var id atomic.Int64
	mux := http.NewServeMux()
	mux.HandleFunc("GET /api/segment/get/{key}", func(w http.ResponseWriter, _ *http.Request) {
		w.Header()["Content-Type"] = []string{"text/plain; charset=utf-8"}
		w.Write(strconv.AppendInt(nil, id.Add(1), 10))
	})
	return netServer{&http.Server{Handler: mux}, ln}
}

type netServer struct {
	*http.Server
	ln net.Listener
}

func (s netServer) Serve() error { return s.Server.Serve(s.ln) }

func newBareGRPC(ln net.Listener) side.Server {
	s := bareGRPC{grpc.NewServer(), ln}
	leafpb.RegisterLeafServiceServer(s, &adder{})
	return s
}

type bareGRPC struct {
	*grpc.Server
	ln net.Listener
}

func (s bareGRPC) Serve() error { return s.Server.Serve(s.ln) }

func (s bareGRPC) Shutdown(context.Context) error {
	s.Stop()
	return nil
}

// adder is leaf.v1.LeafService with nothing behind it.
type adder struct {
	leafpb.UnimplementedLeafServiceServer
	last atomic.Int64
}

func (a *adder) Next(_ context.Context, req *leafpb.NextRequest) (*leafpb.NextResponse, error) {
	return &leafpb.NextResponse{Ranges: a.take(req.GetCount())}, nil
}

func (a *adder) Stream(stream grpc.BidiStreamingServer[leafpb.StreamRequest, leafpb.StreamResponse]) error {
	for {
		req, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if err := stream.Send(&leafpb.StreamResponse{Ranges: a.take(req.GetCount())}); err != nil {
			return err
		}
	}
}

func (a *adder) take(count int32) []*leafpb.Range {
	n := int64(max(count, 1))
	hi := a.last.Add(n) + 1
	return []*leafpb.Range{{Lo: hi - n, Hi: hi}}
}
