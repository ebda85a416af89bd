package respd

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"sync/atomic"
	"time"

	"github.com/leaf-idgen/leaf/internal/server/accept"
)

// Server is a server of the Redis protocol. All methods are safe for concurrent use.
type Server struct {
	ln     *accept.Listener
	limits Config
	log    *slog.Logger
	table  *table
	since  time.Time

	ticks atomic.Int64  // the coarse clock, which starts at 1
	tick  time.Duration // of ticks

	base   context.Context //nolint:containedctx // the context of every request: it ends when Shutdown gives up
	cancel context.CancelFunc

	accepted atomic.Int64
	commands atomic.Int64
	failures atomic.Int64
}

// Stats counts what a server has done since its start.
type Stats struct {
	Connections int64 // open now
	Accepted    int64 // connections, without those refused
	Refused     int64 // connections beyond Config.MaxConns
	Commands    int64 // requests that were carried out, whatever the outcome
	Errors      int64 // error replies
}

// Stats returns the counters.
func (s *Server) Stats() Stats {
	return Stats{
		Connections: int64(s.ln.Open()),
		Accepted:    s.accepted.Load(),
		Refused:     s.ln.Refused(),
		Commands:    s.commands.Load(),
		Errors:      s.failures.Load(),
	}
}

// New returns a server for cfg on a listener, which it owns unless it returns an error. Clients
// can connect already; they are answered once Serve runs. The error is leaf.ErrBadRequest for a
// bad Config.
func New(ln net.Listener, cfg Config) (*Server, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	cfg = cfg.WithDefaults()
	s := &Server{
		limits: cfg,
		log:    cfg.Logger,
		table:  newTable(),
		since:  time.Now(),
		tick:   min(500*time.Millisecond, cfg.IdleTimeout/4, cfg.WriteTimeout/4),
	}
	refuse := s.refuse
	if cfg.TLS != nil {
		refuse = nil // a handshake costs more than the connection
	}
	s.ln = accept.New(ln, accept.Config{MaxConns: cfg.MaxConns, Refuse: refuse, Logger: cfg.Logger})
	s.base, s.cancel = context.WithCancel(context.Background())
	s.ticks.Store(1)
	return s, nil
}

// Addr returns the bound address.
func (s *Server) Addr() net.Addr { return s.ln.Addr() }

// Serve accepts connections until Shutdown is called, and then returns nil at
// once, while Shutdown still waits for requests. Any other end is the listener's
// error. It can be called once.
func (s *Server) Serve() error {
	keepTime := func() {
		accept.Every(s.tick, s.ln.Drained(), func(time.Time) { s.ticks.Add(1) })
	}
	if err := s.ln.Serve(s.serve, keepTime); err != nil {
		return fmt.Errorf("serve the Redis protocol on %s: %w", s.Addr(), err)
	}
	return nil
}

func (s *Server) serve(raw *accept.Conn) {
	c := newConn(s, raw, s.accepted.Add(1))
	c.run()
	_ = c.raw.Close()
}
