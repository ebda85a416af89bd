package sqldb_test

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leaf-idgen/leaf/driver/sqldb"
)

// slowServer is a connector whose sessions take a while.
type slowServer struct {
	takes        func(attempt int) time.Duration
	made, closed atomic.Int32
}

func (s *slowServer) Connect(ctx context.Context) (driver.Conn, error) {
	select {
	case <-time.After(s.takes(int(s.made.Add(1)))):
		return &slowSession{server: s}, nil
	case <-ctx.Done():
		s.closed.Add(1)
		return nil, ctx.Err()
	}
}

func (s *slowServer) Driver() driver.Driver { return nil }

type slowSession struct {
	driver.Conn
	server  *slowServer
	invalid bool
}

func (c *slowSession) Close() error {
	c.server.closed.Add(1)
	return nil
}

func (c *slowSession) IsValid() bool { return !c.invalid }

func always(d time.Duration) func(int) time.Duration {
	return func(int) time.Duration { return d }
}

// A server that needs longer for a session than a caller waits is used all the same: by the next callers.
func TestLatecomers(t *testing.T) {
	const limit = 250 * time.Millisecond
	for _, tt := range []struct {
		name  string
		takes func(attempt int) time.Duration
		asks  []time.Duration // when callers ask, after the one before
		want  string          // of each: whether it got a session
		after time.Duration   // of the last answer
	}{
		{"in time", always(limit / 2), []time.Duration{0, 0}, "++", limit / 2},
		{"a little late", always(limit + 50*time.Millisecond), []time.Duration{0, 0}, "-+", 50 * time.Millisecond},
		{"very late", always(7 * limit / 2), []time.Duration{0, 0, 0, 0, 0}, "---+-", limit},
		{"too late", always(time.Minute), []time.Duration{0, 0, 0}, "---", limit},
		{"nobody asked for longer than it is kept", always(limit + 50*time.Millisecond), []time.Duration{0, 2 * time.Second}, "--", limit},
		{"an attempt hangs, and the server is back", func(attempt int) time.Duration {
			if attempt == 1 {
				return time.Minute
			}
			return limit / 2
		}, []time.Duration{0, 0}, "-+", limit / 2},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				server := &slowServer{takes: tt.takes}
				db := sql.OpenDB(sqldb.WithLatecomers(server, limit, true))
				got, last := "", time.Time{}
				for _, pause := range tt.asks {
					time.Sleep(pause)
					last = time.Now()
					conn, err := db.Conn(t.Context())
					if err != nil {
						got += "-"
						if errors.Is(err, context.DeadlineExceeded) {
							t.Errorf("%v: the caller has no deadline", err)
						}
						continue
					}
					got += "+"
					defer conn.Close()
				}
				if took := time.Since(last); got != tt.want || took > tt.after {
					t.Errorf("%s, the last one after %v; want %s, %v", got, took, tt.want, tt.after)
				}
				time.Sleep(time.Minute)
				if made, closed := server.made.Load(), server.closed.Load(); int(made-closed) != strings.Count(got, "+") {
					t.Errorf("%s, %d attempts, %d ended; want an open session for each caller with one", got, made, closed)
				}
				db.Close()
			})
		})
	}
}

// What comes late is closed with the pool, also while an attempt is under way.
func TestLatecomersEnd(t *testing.T) {
	for name, wait := range map[string]time.Duration{"under way": 0, "waits for a caller": 100 * time.Millisecond} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				server := &slowServer{takes: always(300 * time.Millisecond)}
				db := sql.OpenDB(sqldb.WithLatecomers(server, 250*time.Millisecond, true))
				if conn, err := db.Conn(t.Context()); err == nil {
					t.Fatal(conn)
				}
				time.Sleep(wait)
				db.Close()
				synctest.Wait()
				if made, closed := server.made.Load(), server.closed.Load(); closed != made {
					t.Errorf("%d of %d ended", closed, made)
				}
			})
		})
	}
}

// A pool that keeps no session leaves no attempt behind, whatever a caller waits for.
func TestNoLatecomers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := &slowServer{takes: always(300 * time.Millisecond)}
		db := sql.OpenDB(sqldb.WithLatecomers(server, 250*time.Millisecond, false))
		defer db.Close()
		for range 3 {
			if conn, err := db.Conn(t.Context()); err == nil {
				t.Fatal(conn)
			}
			synctest.Wait()
			if made, closed := server.made.Load(), server.closed.Load(); closed != made {
				t.Errorf("%d of %d ended", closed, made)
			}
		}
	})
}

// A session from before a panic of the driver is not used.
func TestLatecomerFromBeforeAPanic(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := &slowServer{takes: always(300 * time.Millisecond)}
		l := sqldb.WithLatecomers(panickedSince{server}, 250*time.Millisecond, true)
		if conn, err := l.Connect(t.Context()); err == nil {
			t.Fatal(conn)
		}
		time.Sleep(100 * time.Millisecond)
		if conn, err := l.Connect(t.Context()); !errors.Is(err, driver.ErrBadConn) || server.closed.Load() != 1 {
			t.Errorf("%v, %v, %d closed", conn, err, server.closed.Load())
		}
	})
}

// panickedSince makes sessions that are not valid any more.
type panickedSince struct{ *slowServer }

func (p panickedSince) Connect(ctx context.Context) (driver.Conn, error) {
	conn, err := p.slowServer.Connect(ctx)
	if s, ok := conn.(*slowSession); ok {
		s.invalid = true
	}
	return conn, err
}
