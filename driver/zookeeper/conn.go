package zookeeper

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/leaf-idgen/leaf/internal/bounded"
)

// errMoved: a multi expected something that is not so, and nothing was changed.
var errMoved = errors.New("zookeeper: the node has changed since it was read")

var errClosed = errors.New("zookeeper: the connection is closed")

// inFlight bounds the calls of one handle, those included that were abandoned
// because their context ended while the server had not answered.
const inFlight = 256

// conn is the connection of one handle. It is opened by the first call. The client
// library's calls take no context: each runs in a goroutine, which ends when the
// servers answer, when the session is lost, or by close.
type conn struct {
	cfg   Config
	start func(Config) (*session, error)
	slots chan struct{}

	mu      sync.Mutex
	session *session // nil: none yet
	closed  bool
	ending  sync.WaitGroup
}

func newConn(cfg Config) *conn {
	return &conn{cfg: cfg, start: startSession, slots: make(chan struct{}, inFlight)}
}

// close ends the connection and waits for its goroutines. It may be repeated.
func (c *conn) close() {
	c.mu.Lock()
	s := c.session
	c.session, c.closed = nil, true
	c.mu.Unlock()
	if s != nil {
		s.close()
	}
	c.ending.Wait()
}

// use returns the client as soon as it has a session. One that has had none for
// longer than the timeout is replaced: what was tied to it is gone anyway, and it
// would for ever refuse servers that know less than it has seen, as after a wipe.
func (c *conn) use(ctx context.Context) (*session, error) {
	for {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		s, err := c.current()
		if err != nil {
			return nil, err
		}
		ready, _, changed, reason := s.state()
		if ready {
			return s, nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			if reason == nil {
				reason = errors.New("not connected yet")
			}
			return nil, fmt.Errorf("%w (%w)", ctx.Err(), reason)
		}
	}
}

func (c *conn) current() (*session, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return nil, errClosed
	}
	if s := c.session; s != nil {
		if ready, lostAt, _, _ := s.state(); ready || time.Since(lostAt) <= c.cfg.SessionTimeout {
			return s, nil
		}
		c.ending.Go(s.close)
		c.session = nil
	}
	s, err := c.start(c.cfg)
	c.session = s
	return s, err
}

// call runs one request. An error of ctx means that its outcome is unknown.
func call[T any](ctx context.Context, c *conn, step, path string, request func(client) (T, error)) (T, error) {
	var none T
	select {
	case c.slots <- struct{}{}:
	case <-ctx.Done():
		return none, fmt.Errorf("%s %s: %w (%d calls are unanswered)", step, path, ctx.Err(), inFlight)
	}
	s, err := c.use(ctx)
	if err != nil {
		<-c.slots
		return none, fmt.Errorf("%s %s: %w", step, path, err)
	}
	type answer struct {
		value T
		err   error
	}
	answered := make(chan answer, 1)
	start := time.Now()
	go func() {
		defer func() { <-c.slots }()
		value, err := bounded.Recover("the ZooKeeper client", func() (T, error) { return request(s.zk) })
		answered <- answer{value, err}
	}()
	select {
	case a := <-answered:
		if a.err != nil {
			return none, fmt.Errorf("%s %s: %w", step, path, a.err)
		}
		return a.value, nil
	case <-ctx.Done():
		s.unanswered(start)
		return none, fmt.Errorf("%s %s: %w", step, path, ctx.Err())
	}
}
