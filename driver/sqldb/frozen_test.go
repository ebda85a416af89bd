package sqldb_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/driver/sqldb"
	"github.com/leaf-idgen/leaf/internal/test/proxy"
	"github.com/leaf-idgen/leaf/internal/test/server"
	"github.com/leaf-idgen/leaf/segment"
	"github.com/leaf-idgen/leaf/worker"
)

// stall keeps the first piece of a client with text on its way, and nothing else, until
// release. To the server that is a client which stops just before it sends it and keeps
// its connections: a process under SIGSTOP, a virtual machine that is being moved. It
// counts the pieces with text.
func (w wire) stall(t *testing.T, text string) (reached <-chan struct{}, release func(), sent func() int) {
	t.Helper()
	at, gone := make(chan struct{}), make(chan struct{})
	var mu sync.Mutex
	count := 0
	w.SetHook(func(from proxy.Side, data []byte) proxy.Action {
		if from != proxy.Client || !bytes.Contains(data, []byte(text)) {
			return proxy.Pass
		}
		mu.Lock()
		count++
		first := count == 1
		mu.Unlock()
		if first {
			close(at)
			<-gone
		}
		return proxy.Pass
	})
	release = sync.OnceFunc(func() { close(gone) })
	t.Cleanup(release)
	return at, release, func() int {
		mu.Lock()
		defer mu.Unlock()
		return count
	}
}

// frozenCall is a call of one node that stops in the middle, on a wire of its own.
type frozenCall struct {
	name    string
	other   func(ctx context.Context) error // of another node, about the same row
	check   func(t *testing.T, err error)   // after it woke and ended with err
	release func()
	sent    func() int
	ended   chan error
}

// freeze lets call run until it is about to send text.
func (w wire) freeze(t *testing.T, name, text string, call func(ctx context.Context) error) frozenCall {
	t.Helper()
	reached, release, sent := w.stall(t, text)
	f := frozenCall{name: name, release: release, sent: sent, ended: make(chan error, 1)}
	// A frozen node's clock is no deadline, so it has none here.
	go func() { f.ended <- call(context.WithoutCancel(t.Context())) }()
	select {
	case <-reached:
	case err := <-f.ended:
		t.Fatalf("%s: it never sent %q: %v", name, text, err)
	}
	return f
}

// frozenServers are the servers that free what a frozen client holds, with the text of a COMMIT on the wire.
var frozenServers = []struct {
	name, commit string
	database     func(t testing.TB) server.Database
}{
	{"mysql", "COMMIT", server.MariaDB},
	{"mysql itself", "COMMIT", server.MySQL},
	{"postgres", "COMMIT\x00", server.Postgres}, // not COMMITTED
}

// TestFrozenNode: a node that stops in the middle of a transaction and keeps its
// connection does not keep the rows. The server takes the transaction back, another node
// gets the worker ID or the tag, and what the first one sends when it wakes up, once,
// changes nothing.
func TestFrozenNode(t *testing.T) {
	t.Parallel() // MySQL frees what a frozen client holds after half a minute
	for _, c := range frozenServers {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			d := c.database(t)
			applySchema(t, d.URL())
			calls := []frozenCall{
				frozenRenewal(t, d, openRegistry, 1, "FROM leaf_worker WHERE"),
				frozenRenewal(t, d, openRegistry, 2, c.commit),
				frozenTag(t, d, "raise", c.commit, func(ctx context.Context, s *sqldb.Store) error {
					_, err := s.Raise(ctx, "raise", 1000)
					return err
				}),
			}
			insist(t, patience(t, d), calls)
			for _, f := range calls {
				f.release()
				err := <-f.ended
				if f.sent() != 1 {
					t.Errorf("%s: what was held up was sent %d times; want once", f.name, f.sent())
				}
				f.check(t, err)
			}
		})
	}
}

// patience is how long the others may have to wait in all: five seconds on a quiet
// machine, but half a minute on MySQL itself (LEAF_TEST_MYSQL), which has no bound for
// transactions, only one for connections.
func patience(t *testing.T, d server.Database) time.Duration {
	t.Helper()
	if strings.HasPrefix(d.URL(), "postgres") || isMariaDB(t, d.Open(t)) {
		return 20 * time.Second
	}
	return time.Minute
}

// insist makes the calls of the other nodes, as the engines do: each has a short
// deadline, and is made again until it succeeds.
func insist(t *testing.T, limit time.Duration, calls []frozenCall) {
	t.Helper()
	end := time.Now().Add(limit)
	for _, f := range calls {
		for {
			ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
			err := f.other(ctx)
			cancel()
			if err == nil {
				break
			}
			if time.Now().After(end) {
				t.Fatalf("%s: the others still wait after %v: %v", f.name, limit, err)
			}
		}
	}
}

// TestFrozenOwner: an owner of slots that stops in the middle of a renewal keeps the row of its session for less time
// than a node keeps that of its worker ID: its tags wait for it.
func TestFrozenOwner(t *testing.T) {
	t.Parallel()
	for _, c := range frozenServers {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			d := c.database(t)
			applySchema(t, d.URL())
			node := frozenRenewal(t, d, openRegistry, 1, c.commit)
			owner := frozenRenewal(t, d, func(t testing.TB, url string) worker.Records { return openSlots(t, open(t, url)) }, 1, c.commit)
			insist(t, patience(t, d), []frozenCall{owner})
			ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
			defer cancel()
			if err := node.other(ctx); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("the worker ID, which was locked before the slot: %v; want that it is locked for longer", err)
			}
			owner.release()
			owner.check(t, <-owner.ended)
			node.release()
			if err := <-node.ended; err != nil {
				t.Logf("the node woke up too late: %v", err)
			}
		})
	}
}

func openRegistry(t testing.TB, url string) worker.Records { return openRecords(t, url) }

// frozenRenewal is one that stops before it sends text.
func frozenRenewal(t *testing.T, d server.Database, openIn func(t testing.TB, url string) worker.Records, number int64, text string) frozenCall {
	t.Helper()
	w := startWire(t, d)
	s, other := openIn(t, d.Via(w.Addr()).URL()), openIn(t, d.URL())
	r := first()
	r.Number = number
	r = put(t, s, r)
	renewed, taken := r, r
	renewed.Bound += 1000
	taken.Nonce, taken.Bound = "other", r.Bound+5000
	f := w.freeze(t, fmt.Sprintf("renewal of %d", number), text, func(ctx context.Context) error {
		version, err := s.Put(ctx, renewed)
		if version != "" {
			return nil
		}
		return err
	})
	var version string
	f.other = func(ctx context.Context) (err error) {
		version, err = other.Put(ctx, taken)
		if !errors.Is(err, worker.ErrLost) {
			return err
		}
		// An attempt before this one may have been carried out after its deadline.
		all, unread := other.List(ctx)
		for _, is := range all {
			written := taken
			if written.Version = is.Version; is == written {
				version = is.Version
				return nil
			}
		}
		return errors.Join(err, unread)
	}
	f.check = func(t *testing.T, err error) {
		t.Helper()
		if err == nil || errors.Is(err, worker.ErrLost) {
			t.Errorf("%s: %v; want an error that says nothing", f.name, err)
		}
		all, err := other.List(t.Context())
		taken.Version = version
		if err != nil || !slices.Contains(all, taken) {
			t.Errorf("%s: List = %+v, %v; want %+v in it", f.name, all, err, taken)
		}
		if _, err := s.Put(t.Context(), renewed); !errors.Is(err, worker.ErrLost) {
			t.Errorf("%s: the next one: %v; want ErrLost", f.name, err)
		}
	}
	return f
}

// frozenTag is a call about a tag that stops before it sends text.
func frozenTag(t *testing.T, d server.Database, tag, text string, call func(ctx context.Context, s *sqldb.Store) error) frozenCall {
	t.Helper()
	w := startWire(t, d)
	s, other := open(t, d.Via(w.Addr()).URL()), open(t, d.URL())
	if err := s.Create(t.Context(), segment.NewRow{Tag: tag, Start: 1, Step: 7}); err != nil {
		t.Fatal(err)
	}
	f := w.freeze(t, "tag "+tag, text, func(ctx context.Context) error { return call(ctx, s) })
	req := segment.Request{Tag: tag, Step: 7, Length: 7, Min: 1, Max: segment.MaxStep}
	var got segment.Reservation
	f.other = func(ctx context.Context) (err error) {
		got, err = other.Reserve(ctx, req)
		return err
	}
	f.check = func(t *testing.T, err error) {
		t.Helper()
		if err == nil {
			t.Errorf("%s: it succeeded, and another node had the row meanwhile", f.name)
		}
		next, err := s.Reserve(t.Context(), req)
		if err != nil || next.Range != (leaf.Range{Lo: got.Range.Hi, Hi: got.Range.Hi + 7}) || got.Range.Hi >= 1000 {
			t.Errorf("%s: after %v the next range is %v, %v; want the one that follows it", f.name, got.Range, next.Range, err)
		}
	}
	return f
}

// TestIdleConnectionsEnd: a server that ends idle connections costs no call, as MySQL
// does to ours after a while.
func TestIdleConnectionsEnd(t *testing.T) {
	t.Parallel()
	i := server.OwnMariaDB(t)
	admin := i.Open(t)
	admin.SetMaxOpenConns(1)
	execAll(t, admin, "SET GLOBAL wait_timeout = 1")
	applySchema(t, i.URL())
	s, r := open(t, i.URL()), openRecords(t, i.URL())
	if err := s.Create(t.Context(), segment.NewRow{Tag: "a", Start: 1, Step: 7}); err != nil {
		t.Fatal(err)
	}
	claim := put(t, r, first())
	for _, calls := range []map[string]func() error{
		{
			"renewal": func() error { _, err := r.Put(t.Context(), claim); return err },
			"load":    func() error { _, err := s.Reserve(t.Context(), request(7)); return err },
		},
		{
			"list":   func() error { _, err := r.List(t.Context()); return err },
			"return": func() error { return s.ReturnUnused(t.Context(), "a", 8, 3) },
		},
		{
			"peers":                 func() error { _, err := r.Peers(t.Context()); return err },
			"load by a transaction": func() error { _, err := s.Reserve(t.Context(), request(0)); return err },
		},
	} {
		waitFor(t, "the server to end all our connections", func() bool {
			var connections int
			err := admin.QueryRowContext(t.Context(), "SELECT COUNT(*) FROM information_schema.PROCESSLIST WHERE ID > CONNECTION_ID()").Scan(&connections)
			return err == nil && connections == 0
		})
		for name, call := range calls {
			if err := call(); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
}
