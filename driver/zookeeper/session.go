package zookeeper

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-zookeeper/zk"
)

// client is what a session uses of [zk.Conn].
type client interface {
	Get(p string) ([]byte, *zk.Stat, error)
	Children(p string) ([]string, *zk.Stat, error)
	Sync(p string) (string, error)
	Create(p string, data []byte, flags int32, acl []zk.ACL) (string, error)
	Multi(ops ...any) ([]zk.MultiResponse, error)
	SessionID() int64
	Close()
}

// session is one client of the ZooKeeper library. The library connects again by itself, and
// opens a new session when the servers have ended the old one.
type session struct {
	cfg    Config
	zk     client
	events <-chan zk.Event // closed when the client's goroutines have ended

	ctx    context.Context //nolint:containedctx // ends with the session: the client's dialer takes none
	cancel context.CancelFunc

	lastRead atomic.Int64 // Unix ns

	mu      sync.Mutex
	ready   bool
	lostAt  time.Time     // since when it is not ready
	changed chan struct{} // closed when ready changes
	wire    *wire
	reason  error // why the last attempt to connect ended
}

// startSession returns at once; the client connects in the background.
func startSession(cfg Config) (*session, error) {
	ctx, cancel := context.WithCancel(context.Background())
	s := &session{cfg: cfg, ctx: ctx, cancel: cancel, lostAt: time.Now(), changed: make(chan struct{})}
	const longestRequest = 256 << 10
	var err error
	s.zk, s.events, err = zk.Connect(cfg.Servers, cfg.SessionTimeout,
		zk.WithHostProvider(&servers{}),
		zk.WithDialer(s.dial),
		zk.WithEventCallback(s.event),
		zk.WithLogger(logger{cfg.Logger}),
		zk.WithMaxConnBufferSize(longestRequest),
	)
	if err != nil {
		cancel()
		return nil, fmt.Errorf("zookeeper: %w", err)
	}
	return s, nil
}

// dial opens one connection; the client's own timeout is not ours.
func (s *session) dial(network, addr string, _ time.Duration) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(s.ctx, s.cfg.ConnectTimeout)
	defer cancel()
	var d net.Dialer
	raw, err := d.DialContext(ctx, network, addr)
	s.mu.Lock()
	defer s.mu.Unlock()
	if err != nil {
		s.reason = err
		return nil, err
	}
	s.reason = fmt.Errorf("no session from %s", addr)
	s.wire = &wire{
		Conn: raw, limit: s.cfg.ConnectTimeout, lastRead: &s.lastRead,
		forget: context.AfterFunc(s.ctx, func() { raw.Close() }),
	}
	return s.wire, nil
}

// event is called by the client's goroutines and must not block.
func (s *session) event(e zk.Event) {
	if e.Type != zk.EventSession {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	ready := e.State == zk.StateHasSession
	if ready == s.ready {
		return
	}
	s.ready = ready
	if !ready {
		s.lostAt = time.Now()
	}
	close(s.changed)
	s.changed = make(chan struct{})
}

// state returns whether requests can be sent, since when they cannot, a channel
// that is closed when that changes, and what went wrong last.
func (s *session) state() (ready bool, lostAt time.Time, changed <-chan struct{}, reason error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.ready, s.lostAt, s.changed, s.reason
}

// unanswered ends the connection if the server has said nothing since a request
// was sent at start: another server may answer, long before the client gives up.
func (s *session) unanswered(start time.Time) {
	if time.Since(start) < s.cfg.ConnectTimeout/2 || s.lastRead.Load() >= start.UnixNano() {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.wire != nil {
		_ = s.wire.Close() // there is nothing to lose
	}
}

// close ends the session at the servers, if they answer, and waits for the
// client's goroutines. It takes up to a second.
func (s *session) close() {
	if ready, _, _, _ := s.state(); !ready {
		s.cancel()
	}
	s.zk.Close()
	s.cancel()
	for range s.events { // what is left in it
	}
}

// logger passes on what the client says.
type logger struct{ to *slog.Logger }

func (l logger) Printf(format string, args ...any) {
	l.to.Debug("zookeeper: " + fmt.Sprintf(format, args...))
}
