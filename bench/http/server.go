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

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/bench/side"
	"github.com/leaf-idgen/leaf/internal/server/httpd"
)

// serve runs one contender until stdin ends, so that none outlives its parent.
func serve(name string, stdout io.Writer, stdin io.Reader) (err error) {
	var lc net.ListenConfig
	ln, err := lc.Listen(context.Background(), "tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	var s side.Server
	switch name {
	case "leaf":
		access, stop, failed := side.Engine()
		if failed != nil {
			return errors.Join(failed, ln.Close())
		}
		defer func() { err = errors.Join(err, stop()) }()
		s, err = httpd.NewOn(ln, httpd.Config{Access: access})
	case "bare-fast":
		s, err = newBareFast(ln)
	case "bare-net":
		s = newBareNet(ln)
	default:
		err = errors.Join(fmt.Errorf("no server %q", name), ln.Close())
	}
	if err != nil {
		return err
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
