package httpd

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// Server is an HTTP server. All methods are safe for concurrent use.
type Server struct {
	ln     net.Listener
	limits Config // only the limits are used here
	log    *slog.Logger
	open   Opener
	tls    *tls.Config // nil: plain TCP
	slow   *http.Server
	inner  *handover

	clock clock
	tick  time.Duration // of clock

	base     context.Context //nolint:containedctx // the context of every request: it ends when Shutdown gives up
	cancel   context.CancelFunc
	draining atomic.Bool
	cutting  atomic.Bool   // Shutdown has given up: connections end without a farewell
	stop     chan struct{} // closed when draining starts
	done     chan struct{} // closed when the goroutines of Serve may end
	helpers  sync.WaitGroup
	live     atomic.Int64 // open connections, without those that are being refused
	refusals chan struct{}

	mu      sync.Mutex
	serving bool
	conns   map[net.Conn]bool // connections that slow does not know yet; true: a read may be interrupted
	drained chan struct{}     // closed when draining and conns is empty
}

// New binds addr (host:port, port 0 for any) and returns a server for cfg. From
// then on clients can connect; they are answered once Serve runs. The error is
// leaf.ErrBadRequest for a bad Config, else the system's.
func New(addr string, cfg Config) (*Server, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	var lc net.ListenConfig
	ln, err := lc.Listen(context.Background(), "tcp", addr)
	if err != nil {
		return nil, err // names operation and address
	}
	s, err := NewOn(ln, cfg)
	if err != nil {
		ln.Close()
		return nil, err
	}
	return s, nil
}

// NewOn is New for a listener that exists already. It owns ln afterwards, unless
// it returns an error.
func NewOn(ln net.Listener, cfg Config) (*Server, error) {
	a := newAPI(cfg)
	s, err := Mount(ln, cfg, a, a.open)
	if err != nil {
		return nil, err
	}
	a.draining = s.draining.Load
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
		ln:       ln,
		limits:   cfg,
		log:      cfg.Logger,
		open:     open,
		tls:      overHTTP1(cfg.TLS),
		inner:    newHandover(ln.Addr()),
		tick:     min(500*time.Millisecond, cfg.IdleTimeout/4, cfg.WriteTimeout/4),
		stop:     make(chan struct{}),
		done:     make(chan struct{}),
		refusals: make(chan struct{}, maxRefusals),
		conns:    make(map[net.Conn]bool),
		drained:  make(chan struct{}),
	}
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

// Serve accepts connections until Shutdown is called, and then returns nil at
// once, while Shutdown still waits for requests. Any other end is the listener's
// error. It can be called once.
func (s *Server) Serve() error {
	s.mu.Lock()
	if s.serving || s.draining.Load() {
		again := s.serving
		s.mu.Unlock()
		if again {
			return errors.New("httpd: Serve was called before")
		}
		return nil
	}
	s.serving = true
	s.helpers.Go(s.keepTime)
	s.helpers.Go(func() { _ = s.slow.Serve(s.inner) }) // ends with Shutdown only: inner has no error of its own
	s.mu.Unlock()

	for delay := time.Duration(0); ; {
		raw, err := s.ln.Accept()
		switch {
		case err == nil:
			delay = 0
			s.admit(raw)
		case s.draining.Load():
			return nil
		case outOfResources(err):
			// Usually file descriptors: others close theirs, so it passes.
			delay = min(max(2*delay, 5*time.Millisecond), time.Second)
			s.log.Warn("accept", "err", err, "retry_in", delay)
			s.pause(delay)
		default:
			return fmt.Errorf("serve HTTP on %s: %w", s.Addr(), err)
		}
	}
}

// outOfResources reports whether accept can succeed later, or failed for one
// connection only.
func outOfResources(err error) bool {
	for _, errno := range []syscall.Errno{syscall.EMFILE, syscall.ENFILE, syscall.ENOBUFS, syscall.ENOMEM, syscall.ECONNABORTED, syscall.EINTR} {
		if errors.Is(err, errno) {
			return true
		}
	}
	return false
}

func (s *Server) pause(d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-s.stop:
	}
}

// keepTime moves the coarse clock.
func (s *Server) keepTime() {
	t := time.NewTicker(s.tick)
	defer t.Stop()
	for {
		select {
		case now := <-t.C:
			s.clock.tick(now)
		case <-s.done:
			return
		}
	}
}

// Connections returns how many connections are open.
func (s *Server) Connections() int64 { return s.live.Load() }

func (s *Server) admit(raw net.Conn) {
	if s.tls != nil {
		raw = tls.Server(raw, s.tls)
	}
	if s.live.Add(1) > int64(s.limits.MaxConns) {
		s.live.Add(-1)
		s.refuse(raw)
		return
	}
	if !s.track(raw) {
		s.live.Add(-1)
		raw.Close()
		return
	}
	go s.serve(raw)
}

// serve runs one connection on the fast path and passes it on to net/http if that
// is how it ends.
func (s *Server) serve(raw net.Conn) {
	defer s.untrack(raw)
	c := &fastConn{srv: s, raw: raw}
	if c.run() == handOver {
		slow := &slowConn{
			Conn:        raw,
			replay:      append([]byte(nil), c.rest()...),
			headBy:      c.headBy,
			certificate: c.shown.Certificate,
			abrupt:      s.cutting.Load,
			onClose:     func() { s.live.Add(-1) },
		}
		s.leaving(raw)
		if !s.inner.give(slow) {
			_ = slow.Close()
		}
		return
	}
	raw.Close()
	s.live.Add(-1)
}

// track notes a connection, or returns false if the server is draining.
func (s *Server) track(raw net.Conn) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.draining.Load() {
		return false
	}
	s.conns[raw] = true
	return true
}

// leaving notes that raw is about to belong to net/http. It may run a handler
// before untrack does, and an interrupted read would cancel that handler's context.
// An interruption before this one is undone by the first deadline of net/http.
func (s *Server) leaving(raw net.Conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.conns[raw] = false
}

func (s *Server) untrack(raw net.Conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.conns, raw)
	if s.draining.Load() && len(s.conns) == 0 {
		close(s.drained)
	}
}
