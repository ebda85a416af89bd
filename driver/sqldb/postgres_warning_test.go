package sqldb_test

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/driver/sqldb"
	"github.com/leaf-idgen/leaf/internal/test/server"
	"github.com/leaf-idgen/leaf/segment"
	"github.com/leaf-idgen/leaf/worker"
)

// TestCancelledWaitForStandby: PostgreSQL that waits for a standby in vain, and is told
// to wait no longer, calls the commit done and warns that no other server has it. To
// every call that writes, that is an unknown outcome: no range, no claim, no return.
//
// A pooler of transactions gives a node sessions that other programs of its user have used, with
// what they have set there: to hide warnings, or not to wait for a commit. It counts for no
// call whose success a node relies on.
func TestCancelledWaitForStandby(t *testing.T) {
	t.Parallel()
	i := server.OwnPostgres(t)
	applySchema(t, i.URL())
	nodes := []writer{
		newWriter(t, open(t, i.URL()), "own sessions", 5),
		newWriter(t, openUsed(t, i.URL(), "SET client_min_messages = error"), "sessions that hide warnings", 10),
		newWriter(t, openUsed(t, i.URL(), "SET synchronous_commit = off"), "sessions that do not wait", 15),
	}
	claims := newPoolOf(t, nodes[0])
	admin, probes := i.Open(t), i.Open(t)
	execAll(t, admin, "CREATE TABLE probe (n INT)", "ALTER SYSTEM SET synchronous_standby_names = 'nobody'", "SELECT pg_reload_conf()")
	// Each session reads the setting by itself, but commits begin to wait only once another
	// process of the server, the checkpointer, has read it too: nothing but a commit shows that.
	waitFor(t, "commits to wait for a standby", func() bool {
		var failed error // valid once ended is closed
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			_, failed = probes.ExecContext(t.Context(), "INSERT INTO probe VALUES (1)")
		}()
		for {
			select {
			case <-ended:
				if failed != nil {
					t.Error(failed)
				}
				return false
			default:
			}
			if cancelled(t, admin) {
				<-ended
				return true
			}
		}
	})
	for k, w := range nodes {
		for _, c := range w.calls(t) {
			if k > 0 && c.name == "ReturnUnused" {
				continue // a return that is lost leaves the row higher, which repeats nothing
			}
			what := fmt.Sprintf("%s: %s whose wait was cancelled", w.tag, c.name)
			ended := make(chan error, 1)
			go func() { ended <- c.call(t.Context()) }()
			waitFor(t, what, func() bool { return len(ended) > 0 || cancelled(t, admin) })
			err := <-ended
			if err == nil || !strings.Contains(err.Error(), "not have been replicated") {
				t.Errorf("%s: %v; want an error with the server's warning", what, err)
			}
			if errors.Is(err, worker.ErrLost) || errors.Is(err, leaf.ErrConflict) {
				t.Errorf("%s: %v; want an error that claims to know nothing", what, err)
			}
		}
	}
	claims.claimInVain(t)
	execAll(t, admin, "ALTER SYSTEM RESET synchronous_standby_names", "SELECT pg_reload_conf()")
	waitFor(t, "the claim", func() bool { return claims.claim(t) == nil })
	for _, w := range nodes {
		if res, err := w.store.Reserve(t.Context(), w.request()); err != nil || res.Range.Lo < 8 {
			t.Errorf("%s: Reserve afterwards = %v, %v; want a range that nobody can have had", w.tag, res, err)
		}
	}
}

// usedSession is a connector whose sessions another program has used before.
type usedSession struct {
	driver.Connector
	left string // what it has set there
}

func (u usedSession) Connect(ctx context.Context) (driver.Conn, error) {
	conn, err := u.Connector.Connect(ctx)
	if err == nil {
		_, err = conn.(driver.ExecerContext).ExecContext(ctx, u.left, nil)
	}
	return conn, err
}

func openUsed(t *testing.T, url, left string) *sqldb.Store {
	t.Helper()
	return openThrough(t, url, func(c driver.Connector) driver.Connector { return usedSession{c, left} })
}

// writer is a node that writes to one tag and claims two worker IDs.
type writer struct {
	store  *sqldb.Store
	claims *sqldb.Records
	tag    string
	claim  worker.Record // of the first one
}

func newWriter(t *testing.T, s *sqldb.Store, tag string, number int64) writer {
	t.Helper()
	claims, err := s.Records()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := claims.Close(); err != nil {
			t.Error(err)
		}
	})
	if err := s.Create(t.Context(), segment.NewRow{Tag: tag, Start: 1, Step: 7}); err != nil {
		t.Fatal(err)
	}
	claim := first()
	claim.Number = number
	return writer{s, claims, tag, put(t, claims, claim)}
}

func (w writer) request() segment.Request {
	r := request(7)
	r.Tag = w.tag
	return r
}

// claimer claims a worker ID in the pool of a writer.
type claimer struct {
	worker.Registry

	req worker.Request
}

func newPoolOf(t *testing.T, w writer) claimer {
	t.Helper()
	ns := worker.Namespace{Name: "standby", Fingerprint: "any"}
	c := claimer{worker.NewPool(w.claims), worker.Request{Namespace: ns, Address: "10.0.0.1:8080", Nonce: "mine", Numbers: leaf.Range{Lo: 100, Hi: 101}, Now: 1, Bound: 2}}
	if _, err := w.claims.Namespace(t.Context(), &worker.StoredNamespace{Namespace: ns}); err != nil {
		t.Fatal(err)
	}
	return c
}

// claim is one attempt, with a deadline as an engine sets it.
func (c claimer) claim(t *testing.T) error {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
	defer cancel()
	_, err := c.Claim(ctx, c.req)
	return err
}

// claimInVain claims while no standby is there. The end of an attempt also ends the wait in the server, so that
// all see a claim that is on no other server. It is none.
func (c claimer) claimInVain(t *testing.T) {
	t.Helper()
	seen := func() bool {
		records, err := c.List(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return slices.ContainsFunc(records, func(r worker.Record) bool { return r.Nonce == c.req.Nonce })
	}
	for last := false; !last; {
		last = seen() // an attempt that begins with it must fail, too
		if err := c.claim(t); err == nil {
			t.Fatalf("a claim counts that is on no standby; seen before: %v", last)
		}
	}
}

// writing is one call of a writer.
type writing struct {
	name string
	call func(ctx context.Context) error
}

func (w writer) calls(t *testing.T) []writing {
	t.Helper()
	raise := func(ctx context.Context) error { _, err := w.store.Raise(ctx, w.tag, 1000); return err }
	post := func(ctx context.Context) error { return w.store.Post(ctx, segment.Notice{Tag: w.tag, Repaired: 1000}) }
	return []writing{
		{"Reserve", func(ctx context.Context) error {
			res, err := w.store.Reserve(ctx, w.request())
			if res != (segment.Reservation{}) {
				t.Errorf("%s: Reserve = %v, %v; want no range", w.tag, res, err)
			}
			return err
		}},
		{"Raise", raise},
		{"Raise of a row that is high enough", raise}, // as far as can be read
		{"Post", post},
		{"Post of what is posted", post},
		{"ReturnUnused", func(ctx context.Context) error { return w.store.ReturnUnused(ctx, w.tag, 1000, 900) }},
		{"Create", func(ctx context.Context) error {
			return w.store.Create(ctx, segment.NewRow{Tag: w.tag + " 2", Start: 1, Step: 7})
		}},
		{"claim", func(ctx context.Context) error {
			other := first()
			other.Number = w.claim.Number + 1
			_, err := w.claims.Put(ctx, other)
			return err
		}},
		{"renewal", func(ctx context.Context) error {
			renewed := w.claim
			renewed.Bound += 1000
			_, err := w.claims.Put(ctx, renewed)
			return err
		}},
	}
}

// cancelled cancels a commit that waits for a standby, and returns false if there is none.
func cancelled(t *testing.T, admin *sql.DB) bool {
	t.Helper()
	var pid int64
	err := admin.QueryRowContext(t.Context(), "SELECT pid FROM pg_stat_activity WHERE wait_event = 'SyncRep'").Scan(&pid)
	if err != nil {
		return false
	}
	execAll(t, admin, "SET synchronous_commit = local; SELECT pg_cancel_backend("+strconv.FormatInt(pid, 10)+")")
	return true
}

// TestWarningInATransaction: what the server warns of before the commit, such as a
// collation whose version has changed, costs nothing.
func TestWarningInATransaction(t *testing.T) {
	t.Parallel()
	d := server.Postgres(t)
	applySchema(t, d.URL())
	s := open(t, d.URL())
	execAll(t, d.Open(t),
		`CREATE FUNCTION warn() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE WARNING 'beware'; RETURN NEW; END $$`,
		`CREATE TRIGGER warn BEFORE INSERT OR UPDATE ON leaf_alloc FOR EACH ROW EXECUTE FUNCTION warn()`)
	if err := s.Create(t.Context(), segment.NewRow{Tag: "a", Start: 1, Step: 7}); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Raise(t.Context(), "a", 1000); err != nil {
		t.Errorf("Raise: %v", err)
	}
	if res, err := s.Reserve(t.Context(), request(7)); err == nil || !strings.Contains(err.Error(), "beware") {
		t.Errorf("Reserve by a statement that commits = %v, %v; want an error with the warning", res, err)
	}
}
