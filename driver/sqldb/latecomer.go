package sqldb

import (
	"context"
	"database/sql/driver"
	"fmt"
	"io"
	"sync/atomic"
	"time"
)

// Times of latecomers.
const (
	attemptTimes = 10          // how many times as long as a caller an attempt may take
	spareLife    = time.Second // how long a session waits for a caller; below every bound of a server, see idle
)

// latecomers bounds how long a caller waits for a session, from the first packet on: drivers bound the dial only, and
// a server that accepts but does not greet would keep the caller until its own deadline. A session that
// comes late serves the next caller. If each attempt ended with its caller, a server on a busy machine, which
// greets a little too late, would be one without which nothing is ever served.
//
// Each caller makes an attempt of its own, so that it finds a server that is back while an attempt from before hangs.
// At most one attempt goes on without its caller, so there is at most one session more than the pool has. In a pool that
// keeps none, none goes on: a hundred clients that read a directory would each have a session for a second.
type latecomers struct {
	driver.Connector
	timeout time.Duration
	keep    bool // an attempt may go on without its caller

	base  context.Context //nolint:containedctx // parent of all attempts, until Close
	stop  context.CancelFunc
	late  atomic.Bool      // an attempt goes on without its caller, or its session waits
	ready chan driver.Conn // what came late, for who asks next
}

var _ io.Closer = (*latecomers)(nil)

// session is the end of an attempt.
type session struct {
	conn driver.Conn
	err  error
}

// withLatecomers returns a connector whose callers wait for at most timeout.
func withLatecomers(c driver.Connector, timeout time.Duration, keep bool) *latecomers {
	l := &latecomers{Connector: c, timeout: timeout, keep: keep, ready: make(chan driver.Conn)}
	l.base, l.stop = context.WithCancel(context.Background())
	return l
}

// Connect implements driver.Connector.
func (l *latecomers) Connect(ctx context.Context) (driver.Conn, error) {
	select {
	case conn := <-l.ready:
		return usable(conn)
	default:
	}
	attempt, cancel := context.WithTimeout(l.base, attemptTimes*l.timeout)
	made := make(chan session, 1)
	go func() {
		conn, err := l.Connector.Connect(attempt)
		made <- session{conn, err}
	}()
	bounded, stop := context.WithTimeout(ctx, l.timeout)
	defer stop()
	select {
	case s := <-made:
		cancel()
		return s.conn, s.err
	case conn := <-l.ready:
		go l.await(made, cancel)
		return usable(conn)
	case <-bounded.Done():
		go l.await(made, cancel)
	}
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("connect: %w", err)
	}
	return nil, fmt.Errorf("connect: no session within %v", l.timeout) // no deadline of the caller
}

// usable returns a session that came late, unless the driver has panicked since.
func usable(conn driver.Conn) (driver.Conn, error) {
	if v, ok := conn.(driver.Validator); ok && !v.IsValid() {
		_ = conn.Close() // the error says enough
		return nil, driver.ErrBadConn
	}
	return conn, nil
}

// await goes on with an attempt without its caller, or ends it if there is another one such, or none may.
func (l *latecomers) await(made <-chan session, cancel func()) {
	defer cancel()
	only := l.keep && l.late.CompareAndSwap(false, true)
	if only {
		defer l.late.Store(false)
	} else {
		cancel()
	}
	s := <-made
	if s.err != nil {
		return
	}
	if only {
		t := time.NewTimer(spareLife)
		defer t.Stop()
		select {
		case l.ready <- s.conn:
			return
		case <-t.C:
		case <-l.base.Done():
		}
	}
	_ = s.conn.Close() // no caller has come for it
}

// Close implements io.Closer: database/sql calls it at the end. Attempts that are under way end, and close what
// they have made.
func (l *latecomers) Close() error {
	l.stop()
	return nil
}
