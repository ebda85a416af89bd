package sqldb_test

import (
	"database/sql"
	"errors"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/driver/sqldb"
	"github.com/leaf-idgen/leaf/segment"
	"github.com/leaf-idgen/leaf/snowflake"
	"github.com/leaf-idgen/leaf/worker"
)

// TestClaimComparesTheRule: by another tag rule, the nodes may have their worker IDs from another database, where they get
// the same numbers. While a command changes the rule, and afterwards, a node of the rule before neither claims nor renews one,
// also if it was suspended, or has just started. After a refusal it goes on by itself. What it gives back repeats nothing.
func TestClaimComparesTheRule(t *testing.T) {
	eachBase(t, func(t *testing.T, url string, db *sql.DB) {
		ns := worker.NewNamespace("test", snowflake.Leaf(), 0)
		node := ruledRecords(t, bound(t, url, oldRule))
		started := func() worker.Registry { return ruledRecords(t, open(t, url)) }
		claim := func(r worker.Registry, nonce string) (worker.Record, error) {
			now := time.Now().UnixMilli()
			return r.Claim(t.Context(), worker.Request{Namespace: ns, Address: "10.0.0.1:80", Nonce: nonce, Numbers: leaf.Range{Lo: 0, Hi: 8}, Now: now, Bound: now + 1000})
		}
		command := open(t, url)
		change := unbind(t, command)
		if own, err := claim(started(), "before there is a namespace"); !errors.Is(err, segment.ErrRule) {
			t.Errorf("claim while the rule is changed: %+v, %v; want ErrRule", own, err)
		}
		if n := scanInt(t, db, "SELECT COUNT(*) FROM leaf_worker_namespace"); n > 0 {
			t.Error("a node of another rule has made the namespace")
		}
		if err := change.Undo(t.Context()); err != nil {
			t.Fatal(err)
		}
		own, err := claim(node, "own")
		if err != nil {
			t.Fatal(err)
		}
		refused := func(when string, want error) {
			t.Helper()
			before := scanInt(t, db, "SELECT bound FROM leaf_worker_bound")
			if renewed, err := node.Renew(t.Context(), own, own.Bound+1000); !errors.Is(err, want) || errors.Is(err, worker.ErrLost) {
				t.Errorf("renew %s: %+v, %v; want %v", when, renewed, err, want)
			}
			for name, r := range map[string]worker.Registry{"runs": node, "starts": started()} {
				if other, err := claim(r, "another"); !errors.Is(err, want) {
					t.Errorf("claim %s, of a node that %s: %+v, %v; want %v", when, name, other, err, want)
				}
			}
			if now := scanInt(t, db, "SELECT SUM(bound) FROM leaf_worker_bound"); now != before {
				t.Errorf("%s: the sum of all T is %d, was %d", when, now, before)
			}
		}
		change = unbind(t, command)
		refused("while the rule is changed", segment.ErrRule)
		if err := change.Undo(t.Context()); err != nil {
			t.Fatal(err)
		}
		if own, err = node.Renew(t.Context(), own, own.Bound+1000); err != nil {
			t.Errorf("renew after a refusal: %v", err)
		}
		acceptRule(t, command, newRule)
		refused("after another rule was recorded", segment.ErrRule)
		execAll(t, db, "DELETE FROM leaf_meta WHERE name IN ('tag_rule', 'store_name', 'store_names', 'rule_decision')")
		refused("without a rule", sqldb.ErrUnbound)
		if err := node.Release(t.Context(), own, own.Bound); err != nil {
			t.Errorf("release: %v", err)
		}
		execAll(t, db, "DROP TABLE leaf_meta")
		if other, err := claim(started(), "another"); !errors.Is(err, sqldb.ErrUnbound) {
			t.Errorf("claim without leaf_meta: %+v, %v; want ErrUnbound", other, err)
		}
	})
}

// TestClaimBesideAReadingOfRows: in an SQLite file of an earlier version, which lacks a table, each reading of the rows looks again for
// what the schema may have added. The registry shares the store, and makes its first call meanwhile.
func TestClaimBesideAReadingOfRows(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "leaf.db")
	made := open(t, "sqlite:"+path)
	if _, err := made.ApplySchema(t.Context()); err != nil {
		t.Fatal(err)
	}
	execAll(t, raw(t, path), "DROP TABLE leaf_client_option")
	s := open(t, "sqlite:"+path)
	var calls sync.WaitGroup
	for range 8 {
		calls.Go(func() {
			for range 40 {
				if _, err := s.Rows(t.Context()); err != nil {
					t.Error(err)
				}
			}
		})
		calls.Go(func() {
			for range 40 {
				r, err := s.Records()
				if err != nil {
					t.Error(err)
					return
				}
				r.OfRule(segment.Binding{Store: "default"})
				if _, err := r.Namespace(t.Context(), nil); err != nil {
					t.Error(err)
				}
			}
		})
	}
	calls.Wait()
}

// ruledRecords is the registry of a node with oldRule.
func ruledRecords(t *testing.T, s *sqldb.Store) worker.Registry {
	t.Helper()
	r, err := s.Records()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = r.Close() })
	r.OfRule(oldRule)
	return worker.NewPool(r)
}

func scanInt(t *testing.T, db *sql.DB, query string) (n int64) {
	t.Helper()
	if err := db.QueryRowContext(t.Context(), query).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}
