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
	"github.com/leaf-idgen/leaf/internal/meter"
	"github.com/leaf-idgen/leaf/internal/server/admin"
	"github.com/leaf-idgen/leaf/internal/server/console"
	"github.com/leaf-idgen/leaf/internal/server/problem"
)

// server is one of the servers of a node.
type server struct {
	name  string // for errors
	ln    net.Listener
	serve func() error                    // until stop; nil after it
	stop  func(ctx context.Context) error // lets requests finish until ctx ends; closes the listener in any case

	section string             // of a public server, in metrics
	stats   func() connections // of a public server
	sample  func(to samples)   // its own metrics; nil: none
	leave   func()             // asks clients to move before stop is called; nil: there is no way
}

// connections are those of a server.
type connections struct{ open, refused int64 }

// bind binds everything that the configuration names, before an engine touches its files:
// this is what fails most often.
func (a *App) bind() (err error) {
	a.listeners = map[string]net.Listener{}
	var taken []error // all of them: beside another node of the machine it is most of the addresses
	for _, l := range a.cfg.Listeners() {
		ln, err := listen(l.Section+".addr", l.Addr)
		if err != nil {
			taken = append(taken, err)
		}
		if ln != nil {
			a.listeners[l.Section] = ln
			a.closers.add(func() error { return closeListener(ln) })
		}
	}
	if len(taken) > 0 {
		return errors.Join(taken...)
	}
	if a.socket, err = admin.Listen(context.Background(), a.dir.Path()); err != nil {
		return err
	}
	a.closers.add(func() error { return closeListener(a.socket) })
	return nil
}

// openServers makes the servers: the public ones, which a stop ends first, and those for
// the administrator, which it ends last.
func (a *App) openServers() error {
	layout, err := timesOf(a.cfg.Snowflake.Layout)
	if err != nil {
		return err
	}
	n, access := a.node(), a.limits.Access()
	for _, p := range protocols() {
		ln := a.listeners[p.section]
		if ln == nil {
			continue
		}
		m := meter.New(a.withAccessLog(access, p.name), p.section)
		s, err := p.open(a, seat{ln, int(a.conns.of(p.section)), m, n, layout})
		if err != nil {
			return err
		}
		s.name, s.section, s.ln = p.name, p.section, ln
		a.meters = append(a.meters, m)
		a.public = append(a.public, s)
	}
	cfg := admin.Config{Logger: a.log}
	s := admin.NewServer(n.backend(), cfg)
	a.private = append(a.private, server{name: "admin socket", ln: a.socket, serve: func() error { return s.Serve(a.socket) }, stop: s.Stop})
	if ln := a.listeners[config.SectionAdmin]; ln != nil {
		c := a.adminConsole(n, layout)
		cfg.TCP = &admin.TCP{
			Tokens: a.tokens.admin, MaxConns: int(a.conns.of(config.SectionAdmin)), TLS: a.administrationTLS(),
			Session: c.Admits, Ending: c.Close, Open: a.openRoutes(c), Profiles: a.cfg.Admin.Pprof,
		}
		s := admin.NewServer(n.backend(), cfg)
		a.private = append(a.private, server{name: "administration", ln: ln, serve: func() error { return s.Serve(ln) }, stop: s.Stop})
	}
	return nil
}

// openRoutes are the console, which asks for a token itself, and what a load balancer or a
// collector of metrics needs from the administrator's listener: they answer even while all connections of the public ones
// are in use.
func (a *App) openRoutes(c http.Handler) map[string]http.Handler {
	home := http.RedirectHandler(strings.TrimPrefix(console.Prefix, "/"), http.StatusSeeOther) // relative, for a proxy
	return map[string]http.Handler{
		console.Prefix: c,
		"GET /{$}":     home,
		"GET /console": home,
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
		"GET /metrics": a.metrics,
	}
}

func writeText(w http.ResponseWriter, status int, text string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("Cache-Control", problem.NoStore)
	w.WriteHeader(status)
	_, _ = w.Write([]byte(text)) // the client is gone
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
