package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/driver/datadir"
	"github.com/leaf-idgen/leaf/driver/memory"
	"github.com/leaf-idgen/leaf/segment"
	"github.com/leaf-idgen/leaf/server/httpd"
)

const tag = "bench"

// server is what the three have in common.
type server interface {
	Serve() error
	Shutdown(ctx context.Context) error
}

// serve runs one contender until stdin ends, so that none outlives its parent.
func serve(name string, stdout io.Writer, stdin io.Reader) (err error) {
	var lc net.ListenConfig
	ln, err := lc.Listen(context.Background(), "tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	var s server
	switch name {
	case "leaf":
		var stop func() error
		s, stop, err = newLeaf(ln)
		if err == nil {
			defer func() { err = errors.Join(err, stop()) }()
		}
	case "bare-fast":
		s, err = newBareFast(ln)
	case "bare-net":
		s = newBareNet(ln)
	default:
		err = fmt.Errorf("no server %q", name)
	}
	if err != nil {
		return err
	}
	served := make(chan error, 1)
	go func() { served <- s.Serve() }()
	fmt.Fprintln(stdout, ln.Addr())
	_, _ = io.Copy(io.Discard, stdin)

	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	err = s.Shutdown(ctx)
	if served := <-served; !errors.Is(served, http.ErrServerClosed) {
		err = errors.Join(err, served)
	}
	return err
}

// newLeaf is the server as users get it, on a store that costs nothing. The step
// is large: a load per million requests is not what is measured here.
func newLeaf(ln net.Listener) (server, func() error, error) {
	ctx := context.Background()
	folder, err := os.MkdirTemp("", "leaf-bench-")
	if err != nil {
		return nil, nil, err
	}
	dir, err := datadir.Open(folder)
	if err != nil {
		return nil, nil, err
	}
	store := memory.New()
	if err := store.Create(ctx, segment.NewRow{Tag: tag, Start: 1, Step: segment.MaxStep}); err != nil {
		return nil, nil, err
	}
	router, err := segment.NewRouter([]segment.NamedStore{{Name: "default", Store: store}}, nil)
	if err != nil {
		return nil, nil, err
	}
	engine, err := segment.New(router, dir, segment.Config{})
	if err != nil {
		return nil, nil, err
	}
	if err := engine.Start(ctx); err != nil {
		return nil, nil, err
	}
	s, err := httpd.NewOn(ln, httpd.Config{Access: leaf.Anyone(engine, nil)})
	stop := func() error { return errors.Join(engine.Close(ctx), dir.Close(), os.RemoveAll(folder)) }
	return s, stop, err
}

func newBareFast(ln net.Listener) (server, error) {
	var id atomic.Int64
	return httpd.Mount(ln, httpd.Config{}, http.NotFoundHandler(),
		func(leaf.Credentials) (httpd.FastHandler, error) {
			return func(_ context.Context, _ httpd.Mode, _ string, body []byte) ([]byte, error) {
				return strconv.AppendInt(body, id.Add(1), 10), nil
			}, nil
		})
}

func newBareNet(ln net.Listener) server {
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
