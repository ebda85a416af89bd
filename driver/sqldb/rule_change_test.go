package sqldb_test

import (
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/driver/sqldb"
	"github.com/leaf-idgen/leaf/internal/test/server"
	"github.com/leaf-idgen/leaf/segment"
)

// Two rules of the databases a and b.
var (
	oldRule = segment.Binding{Store: "a", Rule: "old", Stores: "a,b"}
	newRule = segment.Binding{Store: "a", Rule: "new", Stores: "a,b"}
)

// ruled is a Store that belongs to a rule, with a row of the tag order that begins at 1.
func ruled(t *testing.T, url string, db *sql.DB, b segment.Binding) *sqldb.Store {
	t.Helper()
	execAll(t, db, "INSERT INTO leaf_alloc (biz_tag, max_id, step, description) VALUES ('order', 1, 1000, '')")
	return bound(t, url, b)
}

func bound(t *testing.T, url string, b segment.Binding) *sqldb.Store {
	t.Helper()
	s := open(t, url)
	if b.Rule != "" {
		_ = recordRule(s)(t, b) // it may be there
	}
	if err := s.Bind(t.Context(), b); err != nil {
		t.Fatal(err)
	}
	return s
}

// recordRule returns what records the first rule of a database.
func recordRule(s *sqldb.Store) func(t *testing.T, b segment.Binding) error {
	return func(t *testing.T, b segment.Binding) error {
		c, err := s.UnbindFirst(t.Context(), rand.Text(), b)
		if err != nil {
			return err
		}
		return accept(t, c)
	}
}

// TestLoadComparesTheRule: a node that was bound before takes no range while a command changes
// the rule, nor after another rule was recorded, nor in a database that a new rule leaves out.
// After a refusal it goes on by itself.
func TestLoadComparesTheRule(t *testing.T) {
	eachBase(t, func(t *testing.T, url string, db *sql.DB) {
		node := ruled(t, url, db, oldRule)
		wantNext(t, node, 1)
		refused := func(when string) {
			t.Helper()
			for _, step := range []int64{1000, 0} { // in one message, and in a transaction
				res, err := node.Reserve(t.Context(), segment.Request{Tag: "order", Step: step, Length: 500, Min: 500, Max: 500})
				if !errors.Is(err, segment.ErrRule) {
					t.Errorf("Reserve %s = %+v, %v; want ErrRule", when, res, err)
				}
			}
		}
		command := open(t, url)
		change := unbind(t, command)
		refused("while the rule is changed")
		if err := change.Undo(t.Context()); err != nil {
			t.Fatal(err)
		}
		execAll(t, db, "UPDATE leaf_alloc SET max_id = 5001")
		wantNext(t, node, 5001)
		acceptRule(t, command, newRule)
		refused("after another rule was recorded")
		acceptRule(t, command, oldRule)
		acceptRule(t, command, segment.Binding{Rule: "new", Stores: "b"})
		refused("in a database that is left out")
		withoutRule := func(when string) {
			t.Helper()
			for range 2 {
				for _, step := range []int64{1000, 0} {
					if res, err := node.Reserve(t.Context(), segment.Request{Tag: "order", Step: step, Length: 500, Min: 500, Max: 500}); err == nil {
						t.Errorf("Reserve with several databases %s = %+v", when, res)
					}
				}
				if err := node.Bind(t.Context(), oldRule); err == nil {
					t.Errorf("Bind with several databases %s succeeds", when)
				}
			}
		}
		execAll(t, db, "DELETE FROM leaf_meta WHERE name IN ('tag_rule', 'store_name', 'store_names')")
		withoutRule("without a rule")
		execAll(t, db, "DROP TABLE leaf_meta")
		withoutRule("without leaf_meta")
	})
}

// TestLoadAfterATableWasAway: an operator takes leaf_alloc, or the right to it, away from the only
// database of a node, and gives it back when another rule is recorded. A load that failed
// meanwhile is no reason to load without a look at the rule.
func TestLoadAfterATableWasAway(t *testing.T) {
	eachBase(t, func(t *testing.T, url string, db *sql.DB) {
		node := ruled(t, url, db, segment.Binding{Store: "default", Stores: "default"})
		wantNext(t, node, 1)
		req := segment.Request{Tag: "order", Step: 1000, Length: 500, Min: 500, Max: 500}
		execAll(t, db, "ALTER TABLE leaf_alloc RENAME TO leaf_alloc_away")
		if res, err := node.Reserve(t.Context(), req); err == nil {
			t.Errorf("Reserve without leaf_alloc = %+v", res)
		}
		execAll(t, db, "ALTER TABLE leaf_alloc_away RENAME TO leaf_alloc")
		acceptRule(t, open(t, url), newRule)
		if res, err := node.Reserve(t.Context(), req); !errors.Is(err, segment.ErrRule) {
			t.Errorf("Reserve after another rule was recorded = %+v, %v; want ErrRule", res, err)
		}
	})
}

// TestRuleInATableThatNodesDoNotSee: loads and commands compare and change the rule in the same
// leaf_meta, and both see all of a change or nothing.
func TestRuleInATableThatNodesDoNotSee(t *testing.T) {
	for _, c := range []struct {
		name     string
		database func(t testing.TB) server.Database
		change   string // of the database
		params   string // of the command's URL
		says     string
	}{
		{"mysql: without transactions", server.MariaDB, "ALTER TABLE leaf_meta ENGINE=MyISAM", "", "ENGINE=InnoDB"},
		{"postgres: by another search_path", server.Postgres, "CREATE SCHEMA admin; CREATE TABLE admin.leaf_meta (LIKE leaf_meta INCLUDING ALL)", "search_path=admin,public", "search_path=SCHEMA"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			d := c.database(t)
			db := d.Open(t)
			applySchema(t, d.URL())
			ruled(t, d.URL(), db, oldRule)
			execAll(t, db, c.change)
			u, err := url.Parse(d.URL())
			if err != nil {
				t.Fatal(err)
			}
			u.RawQuery = strings.Trim(u.RawQuery+"&"+c.params, "&")
			command := open(t, u.String())
			_, err = command.Unbind(t.Context(), rand.Text(), newRule)
			for what, err := range map[string]error{"Unbind": err, "Bind": command.Bind(t.Context(), oldRule)} {
				if !errors.Is(err, segment.ErrSchema) || !strings.Contains(err.Error(), c.says) {
					t.Errorf("%s: %v; want ErrSchema that says %q", what, err, c.says)
				}
			}
			for _, table := range []string{"leaf_meta", "admin.leaf_meta"} {
				var marks int
				if err := db.QueryRowContext(t.Context(), "SELECT COUNT(*) FROM "+table+" WHERE value LIKE 'none:%'").Scan(&marks); err == nil && marks > 0 {
					t.Errorf("%s has the mark of the command", table)
				}
			}
		})
	}
}

// TestUnbindWaitsForLoads: a load has compared the rule, and reserves its range after the rule
// was taken away. Unbind returns when the load has ended, and the rows have its range.
func TestUnbindWaitsForLoads(t *testing.T) {
	eachBase(t, func(t *testing.T, url string, db *sql.DB) {
		ruled(t, url, db, oldRule)
		load, err := db.Conn(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer load.Close()
		run := func(statement string) {
			t.Helper()
			if _, err := load.ExecContext(t.Context(), statement); err != nil {
				t.Fatalf("%s: %v", statement, err)
			}
		}
		if strings.HasPrefix(url, "sqlite:") {
			run("BEGIN IMMEDIATE")
		} else {
			if strings.HasPrefix(url, "postgres:") {
				run("SET deadlock_timeout = '1ms'") // whoever looks for a deadlock first is its victim
			}
			run("BEGIN")
			run("SELECT max_id FROM leaf_alloc WHERE biz_tag = 'order' FOR UPDATE")
		}
		run("SELECT value FROM leaf_meta")
		ended := make(chan error, 1)
		command := open(t, url)
		go func() { ended <- rowsAfterUnbind(command, 1001) }()
		select {
		case err := <-ended:
			t.Fatalf("Unbind returned while a load was under way: %v", err)
		case <-time.After(200 * time.Millisecond): // it cannot be seen where Unbind waits
		}
		run("UPDATE leaf_alloc SET max_id = 1001 WHERE biz_tag = 'order'")
		run("COMMIT")
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

// rowsAfterUnbind takes the rule away, and returns an error if the row of the tag order is below
// an end that was reserved by it.
func rowsAfterUnbind(command *sqldb.Store, end int64) error {
	change, err := command.Unbind(context.Background(), rand.Text(), newRule)
	if err != nil {
		return err
	}
	if rows := change.Rows(); len(rows) != 1 || rows[0].MaxID < end {
		return fmt.Errorf("the rows are %+v; want max_id=%d", rows, end)
	}
	return nil
}

// TestUnbindWaitsForOneStatement: on PostgreSQL a load is one statement, whose view of leaf_meta is
// from its beginning. A trigger makes it wait there, with each default isolation. Its range is in
// the rows when Unbind returns, or the load fails.
func TestUnbindWaitsForOneStatement(t *testing.T) {
	for _, isolation := range []string{"read committed", "repeatable read", "serializable"} {
		t.Run(isolation, func(t *testing.T) {
			t.Parallel()
			d := server.Postgres(t)
			db := d.Open(t)
			applySchema(t, d.URL())
			execAll(t, db,
				fmt.Sprintf("DO $$ BEGIN EXECUTE format('ALTER DATABASE %%I SET default_transaction_isolation = %%L', current_database(), '%s'); END $$", isolation),
				"CREATE FUNCTION wait() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN IF current_query() LIKE '%RETURNING%' THEN PERFORM pg_advisory_xact_lock_shared(7); END IF; RETURN NULL; END $$",
				"CREATE TRIGGER wait BEFORE UPDATE ON leaf_alloc FOR EACH STATEMENT EXECUTE FUNCTION wait()")
			node := ruled(t, d.URL(), db, oldRule)
			gate, err := db.Conn(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			defer gate.Close()
			if _, err := gate.ExecContext(t.Context(), "SELECT pg_advisory_lock(7)"); err != nil {
				t.Fatal(err)
			}
			reserved, ended := make(chan leaf.Range, 1), make(chan error, 1)
			go func() {
				res, err := node.Reserve(context.Background(), segment.Request{Tag: "order", Step: 1000, Length: 500, Min: 500, Max: 500})
				if err != nil && !errors.Is(err, segment.ErrRule) {
					t.Errorf("Reserve: %v", err)
				}
				reserved <- res.Range
			}()
			waitFor(t, "the load waits", func() bool { return waiting(t, db, "locktype = 'advisory'") > 0 })
			command := open(t, d.URL())
			rows := make(chan []segment.Row, 1)
			go func() {
				change, err := command.Unbind(context.Background(), rand.Text(), newRule)
				if err == nil {
					rows <- change.Rows()
				}
				ended <- err
			}()
			waitFor(t, "Unbind waits or has ended", func() bool { return len(ended) > 0 || waiting(t, db, "relation = 'leaf_alloc'::regclass") > 0 })
			if _, err := gate.ExecContext(t.Context(), "SELECT pg_advisory_unlock(7)"); err != nil {
				t.Fatal(err)
			}
			if err := <-ended; err != nil {
				t.Fatal(err)
			}
			if r, all := <-reserved, <-rows; len(all) != 1 || all[0].MaxID < r.Hi {
				t.Errorf("a load reserved %v, and the rows are %+v", r, all)
			}
		})
	}
}

// waiting counts the locks of a kind for which a session of the database waits.
func waiting(t *testing.T, db *sql.DB, kind string) int64 {
	t.Helper()
	return scanInt(t, db, "SELECT COUNT(*) FROM pg_locks WHERE NOT granted AND database = (SELECT oid FROM pg_database WHERE datname = current_database()) AND "+kind)
}

// TestUnbindAmongLoads: nodes load without a pause while a command takes the rule away and puts
// it back. No range ends above the rows as they are when Unbind returns.
func TestUnbindAmongLoads(t *testing.T) {
	eachBase(t, func(t *testing.T, url string, db *sql.DB) {
		execAll(t, db, "INSERT INTO leaf_alloc (biz_tag, max_id, step, description) VALUES ('order', 1, 1000, '')")
		for range 5 {
			unbindAmongLoads(t, open(t, url), url, url)
		}
	})
}

// unbindAmongLoads takes the rule away by a command, and puts it back, while two nodes load
// through each URL.
func unbindAmongLoads(t *testing.T, command *sqldb.Store, urls ...string) {
	t.Helper()
	var group sync.WaitGroup
	ends := make([]int64, 2*len(urls))
	loads := make(chan struct{}, 1000)
	for i := range ends {
		node := bound(t, urls[i/2], oldRule)
		group.Go(func() {
			for n := int64(0); ; n++ {
				res, err := node.Reserve(context.Background(), segment.Request{Tag: "order", Step: 1000 * (n % 2), Length: 10, Min: 10, Max: 10})
				switch {
				case errors.Is(err, segment.ErrRule):
					return
				case err != nil:
					t.Errorf("Reserve: %v", err)
					return
				}
				ends[i] = max(ends[i], res.Range.Hi)
				select {
				case loads <- struct{}{}:
				default:
				}
			}
		})
	}
	for range 20 {
		<-loads
	}
	change := unbind(t, command)
	rows := change.Rows()
	if len(rows) != 1 {
		t.Fatal(rows)
	}
	group.Wait()
	for _, end := range ends {
		if end > rows[0].MaxID {
			t.Errorf("a load by the rule before ends at %d, and the row was at %d", end, rows[0].MaxID)
		}
	}
	if err := change.Undo(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// eachURL runs a test on a store of each kind that has the tables.
func eachURL(t *testing.T, run func(t *testing.T, s *sqldb.Store)) {
	for _, c := range urls {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := open(t, c.url(t))
			if _, err := s.ApplySchema(t.Context()); err != nil {
				t.Fatal(err)
			}
			run(t, s)
		})
	}
}

func unbind(t *testing.T, s *sqldb.Store) *sqldb.RuleChange {
	t.Helper()
	return unbindFor(t, s, newRule)
}

func unbindFor(t *testing.T, s *sqldb.Store, to segment.Binding) *sqldb.RuleChange {
	t.Helper()
	change, err := s.Unbind(t.Context(), rand.Text(), to)
	if err != nil {
		t.Fatal(err)
	}
	return change
}

// accept ends a change.
func accept(t *testing.T, c *sqldb.RuleChange) error {
	t.Helper()
	if err := c.Decide(t.Context(), ""); err != nil {
		return err
	}
	return c.Accept(t.Context())
}

// acceptRule records a rule as the only command that does.
func acceptRule(t *testing.T, s *sqldb.Store, b segment.Binding) {
	t.Helper()
	if err := accept(t, unbindFor(t, s, b)); err != nil {
		t.Fatalf("Accept(%+v): %v", b, err)
	}
}
