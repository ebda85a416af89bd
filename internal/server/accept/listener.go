package accept

import (
	"cmp"
	"errors"
	"log/slog"
	"net"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// The pause after a failure to accept doubles from the first to the last.
const (
	firstPause = 5 * time.Millisecond
	lastPause  = time.Second
)

// Config is what a Listener needs. Every zero value means the default.
type Config struct {
	// MaxConns limits the open connections. Default: no limit.
	MaxConns int

	// Refuse tells a connection beyond the limit why it is refused. It runs on a
	// goroutine of its own; the connection has a deadline of one second, which Drain
	// shortens, and is closed when Refuse returns. Default: it is only closed.
	Refuse func(net.Conn)

	// Logger gets the failures to accept that are waited out. Default slog.Default().
	Logger *slog.Logger
}

// Listener is a net.Listener, see the package. All methods are safe for concurrent use.
type Listener struct {
	ln  net.Listener
	cfg Config

	closed  atomic.Bool   // changes under mu
	stop    chan struct{} // closed with closed
	refused atomic.Int64
	beside  sync.WaitGroup

	mu       sync.Mutex
	serving  bool
	conns    map[*Conn]struct{}    // open, at most MaxConns
	refusing map[net.Conn]struct{} // are told that MaxConns is reached
	busy     int                   // functions that Serve and refuse have started
	drained  chan struct{}         // closed when closed and busy is 0

	closing  sync.Once
	draining sync.Once
}

// New returns a Listener that takes its connections from ln, which it owns afterwards.
func New(ln net.Listener, cfg Config) *Listener {
	cfg.Logger = cmp.Or(cfg.Logger, slog.Default())
	return &Listener{
		ln:       ln,
		cfg:      cfg,
		stop:     make(chan struct{}),
		conns:    make(map[*Conn]struct{}),
		refusing: make(map[net.Conn]struct{}),
		drained:  make(chan struct{}),
	}
}

// Addr implements net.Listener.
func (l *Listener) Addr() net.Addr { return l.ln.Addr() }

// Open returns how many connections are open, without those that are being refused.
func (l *Listener) Open() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.conns)
}

// Refused returns how many connections were refused, since New.
func (l *Listener) Refused() int64 { return l.refused.Load() }

// Accept returns the next connection that finds a place, as a *Conn. It implements
// net.Listener. The error is net.ErrClosed after Close, else the listener's own.
func (l *Listener) Accept() (net.Conn, error) {
	c, err := l.next(false)
	if err != nil {
		return nil, err
	}
	return c, nil
}

// next is Accept. If served is true, Drained waits for the function that will serve the
// connection.
func (l *Listener) next(served bool) (*Conn, error) {
	for delay := time.Duration(0); ; {
		raw, err := l.ln.Accept()
		switch {
		case err == nil:
			delay = 0
			c, refusing := l.admit(raw, served)
			if c != nil {
				return c, nil
			}
			if !refusing {
				_ = raw.Close()
			}
		case l.Closed():
			return nil, net.ErrClosed
		case passes(err):
			delay = min(max(2*delay, firstPause), lastPause)
			l.cfg.Logger.Warn("a connection could not be accepted; the server tries again", "address", l.Addr(), "error", err, "retry_in", delay)
			l.pause(delay)
		default:
			return nil, err
		}
	}
}

// passing are the errors of accept after which it can succeed: others close descriptors
// and give memory back, and Linux reports through accept what the network has already
// done to one new connection (accept(2), "Error handling").
var passing = []syscall.Errno{
	syscall.EMFILE, syscall.ENFILE, syscall.ENOBUFS, syscall.ENOMEM,
	syscall.ECONNABORTED, syscall.EINTR, syscall.EPERM, syscall.EPROTO, syscall.ENOPROTOOPT, syscall.EOPNOTSUPP,
	syscall.ENETDOWN, syscall.ENETUNREACH, syscall.EHOSTDOWN, syscall.EHOSTUNREACH,
}

func passes(err error) bool {
	for _, errno := range passing {
		if errors.Is(err, errno) {
			return true
		}
	}
	return false
}

func (l *Listener) pause(d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-l.stop:
	}
}

// admit takes raw in. If MaxConns is reached, c is nil: raw is being refused (refusing), or
// the caller must close it.
func (l *Listener) admit(raw net.Conn, served bool) (c *Conn, refusing bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.closed.Load():
		return nil, false
	case l.cfg.MaxConns > 0 && len(l.conns) >= l.cfg.MaxConns:
		l.refused.Add(1)
		if !l.mayRefuse(raw) {
			return nil, false
		}
		l.busy++
		l.refusing[raw] = struct{}{}
		go l.refuse(raw)
		return nil, true
	}
	if served {
		l.busy++
	}
	c = &Conn{Conn: raw, of: l}
	l.conns[c] = struct{}{}
	return c, false
}

// finished ends what admit has counted.
func (l *Listener) finished() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.busy--
	if l.busy == 0 && l.closed.Load() {
		close(l.drained)
	}
}

// Closed reports whether Close, Drain or Cut was called.
func (l *Listener) Closed() bool { return l.closed.Load() }

// Close stops accepting. Connections that are open stay so. It implements net.Listener
// and may be called more than once.
func (l *Listener) Close() (err error) {
	l.closing.Do(func() {
		l.mu.Lock()
		l.closed.Store(true)
		if l.busy == 0 {
			close(l.drained)
		}
		l.mu.Unlock()
		close(l.stop)
		err = l.ln.Close()
	})
	return err
}
