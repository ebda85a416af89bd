package sqldb_test

import (
	"database/sql"
	"errors"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/driver/sqldb"
	"github.com/leaf-idgen/leaf/segment"
)

func TestAcceptRule(t *testing.T) {
	eachURL(t, func(t *testing.T, s *sqldb.Store) {
		first, second := segment.Binding{Store: "a", Rule: "r1", Stores: "a"}, segment.Binding{Store: "b", Rule: "r2", Stores: "b,c"}
		for _, b := range []segment.Binding{first, second, {Store: "default", Stores: "default"}, first} {
			acceptRule(t, s, b)
			for _, old := range []segment.Binding{first, second, {Store: "default"}} { // as a node that runs asks
				if err := s.Bind(t.Context(), old); !old.Same(b) && !errors.Is(err, segment.ErrRule) {
					t.Errorf("Bind(%+v) after Accept(%+v): %v; want ErrRule", old, b, err)
				}
			}
			if err := s.Bind(t.Context(), b); err != nil {
				t.Errorf("Bind(%+v) after Accept: %v", b, err)
			}
		}
		if err := s.Bind(t.Context(), second); !errors.Is(err, segment.ErrRule) {
			t.Errorf("Bind(%+v) after Accept(%+v): %v; want ErrRule", second, first, err)
		}
	})
}

// TestUnbind: while a rule is being changed no node binds the database. After a refusal the
// database has the binding that it had, or none.
func TestUnbind(t *testing.T) {
	eachURL(t, func(t *testing.T, s *sqldb.Store) {
		first, second := segment.Binding{Store: "a", Rule: "r1", Stores: "a"}, segment.Binding{Store: "b", Rule: "r2", Stores: "b,c"}
		bound := []segment.Binding{{Store: "default"}, first, second}
		for _, before := range []*segment.Binding{nil, &bound[0], &first} {
			if before != nil {
				acceptRule(t, s, *before)
			}
			change := unbind(t, s)
			for _, b := range bound {
				if err := s.Bind(t.Context(), b); !errors.Is(err, segment.ErrRule) {
					t.Errorf("Bind(%+v) after Unbind of %v: %v; want ErrRule", b, before, err)
				}
			}
			if err := change.Undo(t.Context()); err != nil {
				t.Fatal(err)
			}
			for _, b := range bound {
				fits := before == nil && b.Rule == "" || before != nil && b == *before
				if err := s.Verify(t.Context(), b); (err == nil) != fits {
					t.Errorf("Verify(%+v) after %v was put back: %v", b, before, err)
				}
			}
		}
	})
}

// TestNamesOfAnotherRule: a version that knows nothing of names records another rule. The names of
// the rule before do not count as its own, and a node with the rule writes the right ones.
func TestNamesOfAnotherRule(t *testing.T) {
	eachBase(t, func(t *testing.T, url string, db *sql.DB) {
		bound(t, url, oldRule)
		execAll(t, db, "DELETE FROM leaf_meta WHERE name IN ('tag_rule', 'store_name')",
			"INSERT INTO leaf_meta (name, value) VALUES ('tag_rule', 'new'), ('store_name', 'a')")
		command := open(t, url)
		names := func() string {
			t.Helper()
			change := unbind(t, command)
			if err := change.Undo(t.Context()); err != nil {
				t.Fatal(err)
			}
			return change.Before().Stores
		}
		if got := names(); got != "" {
			t.Errorf("the other rule has the names %q; want none", got)
		}
		bound(t, url, segment.Binding{Store: "a", Rule: "new", Stores: "a,b,c"})
		if got := names(); got != "a,b,c" {
			t.Errorf("after the start of a node the rule has the names %q; want a,b,c", got)
		}
	})
}

// TestTwoCommandsChangeTheRule: one command begins to change the rule while another one does. The
// first one neither puts the old rule back nor records its own, before or after the second one ends.
func TestTwoCommandsChangeTheRule(t *testing.T) {
	eachURL(t, func(t *testing.T, s *sqldb.Store) {
		old, other, fresh := segment.Binding{Store: "a", Rule: "r1", Stores: "a"}, segment.Binding{Store: "a", Rule: "r3"}, segment.Binding{Store: "b", Rule: "r2", Stores: "b,c"}
		acceptRule(t, s, old)
		first, second := unbindFor(t, s, other), unbindFor(t, s, fresh)
		ends := func(when string) {
			t.Helper()
			for name, err := range map[string]error{"Undo": first.Undo(t.Context()), "Decide": first.Decide(t.Context(), ""), "Accept": first.Accept(t.Context())} {
				if !errors.Is(err, leaf.ErrConflict) {
					t.Errorf("%s of the first command %s: %v; want a conflict", name, when, err)
				}
			}
			for _, b := range []segment.Binding{old, other} {
				if err := s.Bind(t.Context(), b); !errors.Is(err, segment.ErrRule) {
					t.Errorf("Bind(%+v) %s: %v; want ErrRule", b, when, err)
				}
			}
		}
		ends("while the second one works")
		if err := accept(t, second); err != nil {
			t.Fatal(err)
		}
		ends("after the second one has recorded its rule")
		if err := s.Bind(t.Context(), fresh); err != nil {
			t.Errorf("Bind by the rule of the second command: %v", err)
		}
	})
}

// TestCommandAfterOneThatWasKilled: as long as a killed command has decided nothing, the rule before
// is put back by one that is refused, and any rule may follow. From then on only its own rule may.
func TestCommandAfterOneThatWasKilled(t *testing.T) {
	eachURL(t, func(t *testing.T, s *sqldb.Store) {
		old, fresh := segment.Binding{Store: "a", Rule: "r1", Stores: "a,b"}, segment.Binding{Store: "b", Rule: "r2", Stores: "b,c"}
		out := segment.Binding{Rule: "r3", Stores: "c"}
		binds := func(when string, b segment.Binding, want error) {
			t.Helper()
			if err := s.Bind(t.Context(), b); !errors.Is(err, want) {
				t.Errorf("Bind(%+v) %s: %v; want %v", b, when, err, want)
			}
		}
		acceptRule(t, s, old)
		unbindFor(t, s, fresh) // and the command is killed
		unbindFor(t, s, out)   // and the next one
		refused := unbindFor(t, s, newRule)
		if before := refused.Before(); before == nil || *before != old {
			t.Errorf("the rule before is %+v; want %+v", before, old)
		}
		if err := refused.Undo(t.Context()); err != nil {
			t.Errorf("Undo: %v", err)
		}
		binds("after all were undone", old, nil)

		if err := unbindFor(t, s, fresh).Decide(t.Context(), ""); err != nil { // killed
			t.Fatal(err)
		}
		for _, to := range []segment.Binding{old, out, {Store: "c", Rule: "r2", Stores: "b,c"}} {
			if _, err := s.Unbind(t.Context(), "another", to); !errors.Is(err, leaf.ErrConflict) || !strings.Contains(err.Error(), `the rule "r2"`) {
				t.Errorf("Unbind for %+v: %v; want a conflict that names the rule", to, err)
			}
		}
		same := unbindFor(t, s, fresh)
		if same.Decision() == "" {
			t.Error("the command does not know that an earlier one decided")
		}
		if err := same.Undo(t.Context()); !errors.Is(err, leaf.ErrConflict) || !strings.Contains(err.Error(), "No node starts until") {
			t.Errorf("Undo: %v; want a conflict that says what to do", err)
		}
		binds("after one of two databases was decided on", old, segment.ErrRule)
		acceptRule(t, s, fresh)
		binds("after its own rule was recorded", fresh, nil)

		if err := unbindFor(t, s, out).Decide(t.Context(), ""); err != nil { // killed
			t.Fatal(err)
		}
		again := unbindFor(t, s, old)
		want := segment.Binding{Store: "b", Rule: "r3", Stores: "c"}
		if by := again.LeftOutBy(); by == nil || *by != want || again.Before() != nil {
			t.Errorf("left out by %+v, and the rule before is %+v; want %+v and none", by, again.Before(), want)
		}
		if err := again.Undo(t.Context()); err != nil {
			t.Error(err)
		}
		binds("that is left out", fresh, segment.ErrRule)
	})
}

// TestRecordOfAnotherVersion: what stands in place of a rule cannot be read, so nothing is known of
// the rule before.
func TestRecordOfAnotherVersion(t *testing.T) {
	eachBase(t, func(t *testing.T, url string, db *sql.DB) {
		for _, rule := range []string{"none: of tomorrow", "none: leaf schema apply --accept-rule is changing it X", "none: leaf schema apply --accept-rule is changing it X; was none: Y"} {
			execAll(t, db, "DELETE FROM leaf_meta WHERE name = 'tag_rule'", "INSERT INTO leaf_meta (name, value) VALUES ('tag_rule', '"+rule+"')")
			if _, err := open(t, url).Unbind(t.Context(), "command", newRule); !errors.Is(err, leaf.ErrConflict) || !strings.Contains(err.Error(), "another version of leaf wrote") {
				t.Errorf("Unbind in place of %q: %v; want a conflict that says why", rule, err)
			}
		}
	})
}

// TestUndoAfterALostAnswer: whether a command has decided is not known, because the answer to its
// COMMIT was lost. It can still put the rule back.
func TestUndoAfterALostAnswer(t *testing.T) {
	eachBase(t, func(t *testing.T, url string, _ *sql.DB) {
		acceptRule(t, open(t, url), oldRule)
		var armed atomic.Bool
		lost := &seam{trip: func(call string, after bool) {
			if after && call == "Exec COMMIT" && armed.CompareAndSwap(true, false) {
				panic("the answer is lost")
			}
		}}
		s, err := sqldb.Open(url, sqldb.WithFaults(sqldb.Config{ConnectTimeout: 10 * time.Second, Logger: slog.New(slog.DiscardHandler)}, lost.below))
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		change := unbind(t, s)
		armed.Store(true)
		if err := change.Decide(t.Context(), ""); err == nil || armed.Load() {
			t.Fatalf("Decide: %v; want that its answer is lost", err)
		}
		if err := change.Undo(t.Context()); err != nil {
			t.Errorf("Undo: %v", err)
		}
		if err := open(t, url).Bind(t.Context(), oldRule); err != nil {
			t.Errorf("Bind by the rule before: %v", err)
		}
	})
}
