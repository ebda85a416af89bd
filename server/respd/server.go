package respd

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// Server is a server of the Redis protocol. All methods are safe for concurrent use.
type Server struct {
	ln     net.Listener
	limits Config
	log    *slog.Logger
	table  *table
	since  time.Time

	ticks atomic.Int64  // the coarse clock, which starts at 1
	tick  time.Duration // of ticks

	base     context.Context //nolint:containedctx // the context of every request: it ends when Shutdown gives up
	cancel   context.CancelFunc
	draining atomic.Bool
	stop     chan struct{} // closed when draining starts
	done     chan struct{} // closed when the goroutines of Serve may end
	helpers  sync.WaitGroup
	refusals chan struct{}

	live     atomic.Int64 // open connections, without those that are being refused
	accepted atomic.Int64
	refused  atomic.Int64
	commands atomic.Int64
	failures atomic.Int64

	mu      sync.Mutex
	serving bool
	conns   map[net.Conn]struct{}
	drained chan struct{} // closed when draining and conns is empty
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
		Connections: s.live.Load(),
		Accepted:    s.accepted.Load(),
		Refused:     s.refused.Load(),
		Commands:    s.commands.Load(),
		Errors:      s.failures.Load(),
	}
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
	return NewOn(ln, cfg)
}

// NewOn is New for a listener that exists already. It owns ln afterwards, unless
// it returns an error.
func NewOn(ln net.Listener, cfg Config) (*Server, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	cfg = cfg.WithDefaults()
	s := &Server{
		ln:       ln,
		limits:   cfg,
		log:      cfg.Logger,
		table:    newTable(),
		since:    time.Now(),
		tick:     min(500*time.Millisecond, cfg.IdleTimeout/4, cfg.WriteTimeout/4),
		stop:     make(chan struct{}),
		done:     make(chan struct{}),
		refusals: make(chan struct{}, maxRefusals),
		conns:    make(map[net.Conn]struct{}),
		drained:  make(chan struct{}),
	}
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
	s.mu.Lock()
	if s.serving || s.draining.Load() {
		again := s.serving
		s.mu.Unlock()
		if again {
			return errors.New("respd: Serve was called before")
		}
		return nil
	}
	s.serving = true
	s.helpers.Go(s.keepTime)
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
			return fmt.Errorf("serve the Redis protocol on %s: %w", s.Addr(), err)
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
		case <-t.C:
			s.ticks.Add(1)
		case <-s.done:
			return
		}
	}
}

func (s *Server) admit(raw net.Conn) {
	if s.live.Add(1) > int64(s.limits.MaxConns) {
		s.live.Add(-1)
		s.refused.Add(1)
		s.refuse(raw)
		return
	}
	if !s.track(raw) {
		s.live.Add(-1)
		raw.Close()
		return
	}
	id := s.accepted.Add(1)
	go func() {
		defer s.untrack(raw)
		defer s.live.Add(-1)
		c := newConn(s, raw, id)
		c.run()
		c.raw.Close()
	}()
}

// track notes a connection, or returns false if the server is draining.
func (s *Server) track(raw net.Conn) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.draining.Load() {
		return false
	}
	s.conns[raw] = struct{}{}
	return true
}

func (s *Server) untrack(raw net.Conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.conns, raw)
	if s.draining.Load() && len(s.conns) == 0 {
		close(s.drained)
	}
}
