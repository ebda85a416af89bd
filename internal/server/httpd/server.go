package httpd

import (
	"context"
	"crypto/tls"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/internal/server/accept"
)

// Server is an HTTP server. All methods are safe for concurrent use.
type Server struct {
	ln     *accept.Listener
	limits Config // only the limits are used here
	log    *slog.Logger
	open   Opener
	tls    *tls.Config // nil: plain TCP
	slow   *http.Server
	inner  *handover

	leaving atomic.Bool // see Leave

	clock clock
	tick  time.Duration // of clock

	base   context.Context //nolint:containedctx // the context of every request: it ends when Shutdown gives up
	cancel context.CancelFunc
}

// New returns a server for cfg on a listener, which it owns unless it returns an error. Clients
// can connect already; they are answered once Serve runs. The error is leaf.ErrBadRequest for a
// bad Config.
func New(ln net.Listener, cfg Config) (*Server, error) {
	a := newAPI(cfg)
	s, err := Mount(ln, cfg, a, a.open)
	if err != nil {
		return nil, err
	}
	a.draining, a.leaving = s.ln.Closed, s.leaving.Load
	return s, nil
}

// Mount returns a server of the same stack with other handlers: slow behind net/http,
// those that open returns on the fast path. Of cfg only TLS, the limits and the logger
// are used. It exists so that a benchmark can tell the cost of the stack from that of
// Leaf.
func Mount(ln net.Listener, cfg Config, slow http.Handler, open Opener) (*Server, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	cfg = cfg.WithDefaults()
	s := &Server{
		limits: cfg,
		log:    cfg.Logger,
		open:   open,
		tls:    overHTTP1(cfg.TLS),
		inner:  newHandover(ln.Addr()),
		tick:   min(500*time.Millisecond, cfg.IdleTimeout/4, cfg.WriteTimeout/4),
	}
	s.ln = accept.New(ln, accept.Config{MaxConns: cfg.MaxConns, Refuse: s.refuse, Logger: cfg.Logger})
	s.base, s.cancel = context.WithCancel(context.Background())
	s.clock.tick(time.Now())
	s.slow = &http.Server{
		Handler:                      slow,
		ReadTimeout:                  cfg.HeaderTimeout, // bounds a body, which no route wants, too
		ReadHeaderTimeout:            cfg.HeaderTimeout,
		WriteTimeout:                 cfg.WriteTimeout,
		IdleTimeout:                  cfg.IdleTimeout,
		MaxHeaderBytes:               cfg.MaxHeadBytes - 4<<10, // net/http allows 4 KiB beyond its limit
		DisableGeneralOptionsHandler: true,
		ErrorLog:                     slog.NewLogLogger(cfg.Logger.Handler(), slog.LevelWarn),
		BaseContext:                  func(net.Listener) context.Context { return s.base },
		ConnContext:                  withCertificate,
	}
	return s, nil
}

// Addr returns the bound address.
func (s *Server) Addr() net.Addr { return s.ln.Addr() }

// Connections returns how many connections are open.
func (s *Server) Connections() int64 { return int64(s.ln.Open()) }

// Refused returns how many connections were refused, because MaxConns were open.
func (s *Server) Refused() int64 { return s.ln.Refused() }

// Serve accepts connections until Shutdown is called, and then returns nil at
// once, while Shutdown still waits for requests. Any other end is the listener's
// error. It can be called once.
func (s *Server) Serve() error {
	keepTime := func() { accept.Every(s.tick, s.ln.Drained(), s.clock.tick) }
	serveSlow := func() { _ = s.slow.Serve(s.inner) } // ends with Shutdown only: inner has no error of its own
	if err := s.ln.Serve(s.serve, keepTime, serveSlow); err != nil {
		return fmt.Errorf("serve HTTP on %s: %w", s.Addr(), err)
	}
	return nil
}

// serve runs one connection on the fast path and passes it on to net/http if that
// is how it ends.
func (s *Server) serve(conn *accept.Conn) {
	c := &fastConn{srv: s, raw: s.secured(conn)}
	c.ctx = context.WithValue(s.base, leaf.WaitKey{}, func() { _ = c.flush() }) // after an error nothing more is written, and the connection ends later
	if c.run() != handOver {
		_ = c.raw.Close()
		return
	}
	slow := &slowConn{
		Conn:        c.raw,
		replay:      append([]byte(nil), c.rest()...),
		headBy:      c.headBy,
		certificate: c.shown.Certificate,
	}
	// net/http may run a handler before this function returns, and an interrupted read
	// would cancel that handler's context. An interruption before this one is undone by
	// the first deadline of net/http.
	conn.Spare()
	if !s.inner.give(slow) {
		_ = slow.Close()
	}
}
