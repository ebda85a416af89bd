package app

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/leaf-idgen/leaf/internal/config"

	"github.com/leaf-idgen/leaf/internal/manage"
	"github.com/leaf-idgen/leaf/internal/server/admin"
	"github.com/leaf-idgen/leaf/internal/server/grpcd"
	"github.com/leaf-idgen/leaf/internal/server/httpd"
	"github.com/leaf-idgen/leaf/internal/server/respd"
)

// server is one of the servers of a node.
type server struct {
	name  string // for errors
	ln    net.Listener
	serve func() error                    // until stop; nil after it
	stop  func(ctx context.Context) error // lets requests finish until ctx ends; closes the listener in any case

	sample func(to samples) // its metrics; nil: none
	leave  func()           // asks clients to move before stop is called; nil: there is no way
}

// listeners are the bound addresses of a node; nil for a server that is off.
type listeners struct {
	http, grpc, resp, admin net.Listener
	socket                  net.Listener
}

// bind binds everything that cfg names, before an engine touches its files: this is
// what fails most often.
func (a *App) bind() (err error) {
	for _, l := range []struct {
		key, addr string
		ln        *net.Listener
	}{
		{"http.addr", a.cfg.HTTP.Addr, &a.listeners.http},
		{"grpc.addr", a.cfg.GRPCAddr(), &a.listeners.grpc},
		{"resp.addr", a.cfg.RESPAddr(), &a.listeners.resp},
		{"admin.addr", a.cfg.AdminAddr(), &a.listeners.admin},
	} {
		if *l.ln, err = listen(l.key, l.addr); err != nil {
			return err
		}
		if ln := *l.ln; ln != nil {
			a.closers = append(a.closers, func() error { return closeListener(ln) })
		}
	}
	a.listeners.socket, err = admin.Listen(context.Background(), a.dir.Path())
	if err != nil {
		return err
	}
	a.closers = append(a.closers, func() error { return closeListener(a.listeners.socket) })
	return nil
}

// openServers makes the servers: the public ones, which a stop ends first, and those for
// the administrator, which it ends last.
func (a *App) openServers() error {
	backend, access := a.node(), a.limits.Access()
	layout, err := config.ParseLayout(a.cfg.Snowflake.Layout)
	if err != nil {
		return err
	}
	web := a.httpConfig(backend, layout)
	web.Access, web.TLS = access, a.secure
	h, err := httpd.NewOn(a.listeners.http, web)
	if err != nil {
		return err
	}
	a.public = append(a.public, server{"HTTP", a.listeners.http, h.Serve, h.Shutdown, func(to samples) {
		to.gauge("leaf_http_connections", "Connections of the HTTP server that are open.", float64(h.Connections()))
	}, h.Leave})
	if ln := a.listeners.grpc; ln != nil {
		g, err := grpcd.NewOn(ln, grpcd.Config{Access: access, Cluster: a.cluster.get, Ready: a.ready, TLS: a.secure, MaxConns: int(a.conns.grpc), Logger: a.log})
		if err != nil {
			return err
		}
		a.public = append(a.public, server{"gRPC", ln, g.Serve, g.Shutdown, func(to samples) {
			to.gauge("leaf_grpc_connections", "Connections of the gRPC server that are open.", float64(g.Connections()))
		}, nil})
	}
	if ln := a.listeners.resp; ln != nil {
		r, err := respd.NewOn(ln, respd.Config{
			Access: access, TLS: a.secure, Version: a.opts.Version, Decode: decodeRESP(layout),
			MaxConns: int(a.conns.resp), IdleTimeout: a.cfg.RESP.IdleTimeout, Logger: a.log,
		})
		if err != nil {
			return err
		}
		a.public = append(a.public, server{"RESP", ln, r.Serve, r.Shutdown, func(to samples) { sampleRESP(to, r.Stats()) }, nil})
	}
	cfg := admin.Config{Logger: a.log}
	s := admin.NewServer(manage.On(backend), cfg)
	a.private = append(a.private, server{"admin socket", a.listeners.socket, func() error { return s.Serve(a.listeners.socket) }, s.Stop, nil, nil})
	if ln := a.listeners.admin; ln != nil {
		cfg.TCP = &admin.TCP{Tokens: a.tokens.admin, MaxConns: int(a.conns.admin), Open: a.openRoutes()}
		s := admin.NewServer(manage.On(backend), cfg)
		a.private = append(a.private, server{"administration", ln, func() error { return s.Serve(ln) }, s.Stop, nil, nil})
	}
	return nil
}

// openRoutes are what a load balancer or a collector of metrics needs from the
// administrator's listener: they answer even while all connections of the public ones
// are in use.
func (a *App) openRoutes() map[string]http.Handler {
	return map[string]http.Handler{
		"GET /healthz": http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { writeText(w, http.StatusOK, "ok\n") }),
		"GET /readyz": http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			ready, reasons, err := a.ready().Of(r.URL.Query().Get("mode"))
			if err != nil {
				writeText(w, http.StatusBadRequest, err.Error()+"\n")
				return
			}
			status := http.StatusOK
			if !ready {
				status = http.StatusServiceUnavailable
			}
			writeText(w, status, fmt.Sprintf("ready: %t\n%s", ready, lines(reasons)))
		}),
		"GET /metrics": a.metrics(),
	}
}

func writeText(w http.ResponseWriter, status int, text string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_, _ = w.Write([]byte(text)) // nobody is left to tell
}

func lines(texts []string) string {
	var b strings.Builder
	for _, t := range texts {
		b.WriteString(t + "\n")
	}
	return b.String()
}

// serveAll starts all servers.
func (a *App) serveAll() {
	for _, s := range append(a.public, a.private...) {
		a.serving.Go(func() { a.report(s.serve()) })
	}
}

// stopAll ends servers side by side.
func stopAll(ctx context.Context, servers []server) error {
	errs := make([]error, len(servers))
	var all sync.WaitGroup
	for i, s := range servers {
		all.Go(func() { errs[i] = errors.Join(s.stop(ctx), closeListener(s.ln)) })
	}
	all.Wait()
	return errors.Join(errs...)
}

// address returns where a server listens, "" if it is off.
func address(ln net.Listener) string {
	if ln == nil {
		return ""
	}
	return ln.Addr().String()
}

// replyTime is what a client gets to accept a reply, beyond the time for which its
// request may wait for a range.
const replyTime = 10 * time.Second

// scheme is that of the HTTP server's URL.
func (a *App) scheme() string {
	if a.secure != nil {
		return "https"
	}
	return "http"
}
