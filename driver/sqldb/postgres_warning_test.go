package sqldb_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/internal/test/server"
	"github.com/leaf-idgen/leaf/segment"
	"github.com/leaf-idgen/leaf/worker"
)

// TestCancelledWaitForStandby: PostgreSQL that waits for a standby in vain, and is told
// to wait no longer, calls the commit done and warns that no other server has it. To
// every call that writes, that is an unknown outcome: no range, no claim, no return.
func TestCancelledWaitForStandby(t *testing.T) {
	t.Parallel()
	i := server.OwnPostgres(t)
	applySchema(t, i.URL())
	s, claims := open(t, i.URL()), openRecords(t, i.URL())
	if err := s.Create(t.Context(), segment.NewRow{Tag: "a", Start: 1, Step: 7}); err != nil {
		t.Fatal(err)
	}
	claim := put(t, claims, first())
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
	for _, c := range []struct {
		name string
		call func(ctx context.Context) error
	}{
		{"Reserve", func(ctx context.Context) error {
			res, err := s.Reserve(ctx, request(7))
			if res != (segment.Reservation{}) {
				t.Errorf("Reserve = %v beside an error", res)
			}
			return err
		}},
		{"Raise", func(ctx context.Context) error { _, err := s.Raise(ctx, "a", 1000); return err }},
		{"ReturnUnused", func(ctx context.Context) error { return s.ReturnUnused(ctx, "a", 1000, 900) }},
		{"Create", func(ctx context.Context) error {
			return s.Create(ctx, segment.NewRow{Tag: "b", Start: 1, Step: 7})
		}},
		{"claim", func(ctx context.Context) error {
			other := first()
			other.Number = 6
			_, err := claims.Put(ctx, other)
			return err
		}},
		{"renewal", func(ctx context.Context) error {
			claim.Bound += 1000
			_, err := claims.Put(ctx, claim)
			return err
		}},
	} {
		ended := make(chan error, 1)
		go func() { ended <- c.call(t.Context()) }()
		cancelWait(t, admin)
		err := <-ended
		if err == nil || !strings.Contains(err.Error(), "not have been replicated") {
			t.Errorf("%s whose wait was cancelled: %v; want an error with the server's warning", c.name, err)
		}
		if errors.Is(err, worker.ErrLost) || errors.Is(err, leaf.ErrConflict) {
			t.Errorf("%s whose wait was cancelled: %v; want an error that claims to know nothing", c.name, err)
		}
	}
	execAll(t, admin, "ALTER SYSTEM RESET synchronous_standby_names", "SELECT pg_reload_conf()")
	if res, err := s.Reserve(t.Context(), request(7)); err != nil || res.Range.Lo < 8 {
		t.Errorf("Reserve afterwards = %v, %v; want a range that nobody can have had", res, err)
	}
}

// cancelWait cancels whoever waits for a standby next.
func cancelWait(t *testing.T, admin *sql.DB) {
	t.Helper()
	waitFor(t, "a commit to wait for the standby", func() bool { return cancelled(t, admin) })
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

// TestHiddenWarnings: a server that hides warnings from its clients hides that a wait for its
// standby was cancelled. Neither ranges nor worker IDs come from it.
func TestHiddenWarnings(t *testing.T) {
	for level, hides := range map[string]bool{"error": true, "notice": false, "warning": false} {
		t.Run(level, func(t *testing.T) {
			t.Parallel()
			d := server.Postgres(t)
			applySchema(t, d.URL())
			execAll(t, d.Open(t), fmt.Sprintf("ALTER DATABASE %s SET client_min_messages = %s", d.Name(), level))
			for what, err := range map[string]error{
				"Bind":      open(t, d.URL()).Bind(t.Context(), segment.Binding{Store: "default"}),
				"Namespace": func() error { _, err := openRecords(t, d.URL()).Namespace(t.Context(), nil); return err }(),
			} {
				if refused := errors.Is(err, leaf.ErrConflict) && strings.Contains(err.Error(), "SET client_min_messages = warning"); refused != hides || err != nil != hides {
					t.Errorf("%s: %v; want a refusal: %v", what, err, hides)
				}
			}
		})
	}
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
