package sqldb_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/driver/drivertest"
	"github.com/leaf-idgen/leaf/driver/sqldb"
	"github.com/leaf-idgen/leaf/internal/test/proxy"
	"github.com/leaf-idgen/leaf/internal/test/server"
	"github.com/leaf-idgen/leaf/segment"
)

func request(step int64) segment.Request {
	return segment.Request{Tag: "a", Step: step, Length: 7, Min: 1, Max: segment.MaxStep}
}

// TestHostileDefaults: a server whose sessions neither commit by themselves, nor
// end a transaction at COMMIT, nor check numbers, nor read backslashes, nor speak
// UTF-8, nor answer with more than one row, nor change rows without a key, changes nothing for us.
func TestHostileDefaults(t *testing.T) {
	t.Parallel()
	for _, product := range []struct {
		name, fixture string
		own           func(testing.TB) *server.Instance
		isolation     string // the variable's name
	}{
		{"mariadb", "mysql", server.OwnMariaDB, "tx_isolation"},
		{"mysql", "mysql itself", server.OwnMySQL, "transaction_isolation"},
	} {
		t.Run(product.name, func(t *testing.T) {
			t.Parallel()
			if product.name == "mysql" {
				onlyInMatrix(t, "the statements are those of MariaDB")
			}
			i := product.own(t)
			admin := i.Open(t)
			admin.SetMaxOpenConns(1)
			execAll(t, admin, "SET SESSION completion_type = 0",
				"SET GLOBAL autocommit = 0", "SET GLOBAL completion_type = 1", "SET GLOBAL "+product.isolation+" = 'SERIALIZABLE'",
				"SET GLOBAL sql_mode = 'NO_BACKSLASH_ESCAPES,ANSI_QUOTES,PAD_CHAR_TO_FULL_LENGTH,PIPES_AS_CONCAT'", "SET GLOBAL character_set_server = latin1",
				"SET GLOBAL sql_select_limit = 1", "SET GLOBAL sql_safe_updates = 1")
			const own = "?autocommit=1&completion_type=0&sql_mode=%27%27&charset=utf8mb4&sql_select_limit=18446744073709551615&sql_safe_updates=0"
			t.Run("the tag rule", func(t *testing.T) {
				execAll(t, admin, "CREATE DATABASE rules")
				applySchema(t, i.Named("rules").URL())
				s := open(t, i.Named("rules").URL())
				for _, tag := range []string{"a", "b"} {
					if err := s.Create(t.Context(), segment.NewRow{Tag: tag, Start: 1, Step: 7}); err != nil {
						t.Fatal(err)
					}
				}
				acceptRule(t, s, newRule)
				if err := s.Verify(t.Context(), newRule); err != nil {
					t.Error(err)
				}
			})
			var number atomic.Int64
			drivertest.Run(t, func(t *testing.T) drivertest.Backend {
				d := i.Named(fmt.Sprintf("leaf%d", number.Add(1)))
				execAll(t, admin, "CREATE DATABASE "+d.Name())
				dsn, err := d.DSN()
				if err != nil {
					t.Fatal(err)
				}
				// The suite's own sessions are not to be tested.
				db, err := sql.Open("mysql", dsn+own)
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { _ = db.Close() })
				return named(product.fixture).backend(t, d, db)
			})
		})
	}
}

// TestErrorsOfAGroup: what MySQL says when another member of a group has changed the same row first
// is repeated (TestUnbindInAGroup met each). Another failed COMMIT is an unknown outcome.
func TestErrorsOfAGroup(t *testing.T) {
	t.Parallel()
	for text, c := range map[string]struct {
		number  uint16
		repeats bool
	}{
		"Plugin instructed the server to rollback the current transaction.":  {3101, true},
		"Got error 149 - 'Lock deadlock; Retry transaction' during COMMIT":   {1180, true},
		"Got error 28 - 'No space left on device' during COMMIT":             {1180, false},
		"Deadlock found when trying to get lock; try restarting transaction": {1213, true},
		"Lost connection to MySQL server during query":                       {2013, false},
	} {
		if got := sqldb.RepeatsMySQL(&mysql.MySQLError{Number: c.number, Message: text}); got != c.repeats {
			t.Errorf("error %d, %s: repeated %v, want %v", c.number, text, got, c.repeats)
		}
	}
}

// TestNarrowColumn: where max_id is no bigint, a range that does not fit is an
// error, and not a number that the server cut down without saying so.
func TestNarrowColumn(t *testing.T) {
	for name, database := range map[string]func(t testing.TB) server.Database{"mysql": server.MariaDB, "postgres": server.Postgres} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := database(t)
			execAll(t, d.Open(t), "CREATE TABLE leaf_alloc (biz_tag varchar(128) PRIMARY KEY, max_id int, step int, update_time timestamp)",
				"INSERT INTO leaf_alloc (biz_tag, max_id, step) VALUES ('a', 2147483640, 7)")
			s := open(t, d.URL())
			res, err := s.Reserve(t.Context(), request(7))
			if want := (leaf.Range{Lo: math.MaxInt32 - 7, Hi: math.MaxInt32}); err != nil || res.Range != want {
				t.Fatalf("Reserve = %v, %v; want %v", res, err, want)
			}
			for _, step := range []int64{7, 0} {
				if res, err := s.Reserve(t.Context(), request(step)); !errors.Is(err, leaf.ErrOverflow) {
					t.Errorf("Reserve past the column's end = %v, %v; want ErrOverflow", res, err)
				}
			}
			if row, err := s.Lookup(t.Context(), "a"); err != nil || row.MaxID != math.MaxInt32 {
				t.Errorf("Lookup = %v, %v; want the row unchanged", row, err)
			}
		})
	}
}

// TestInfinity: a row whose time PostgreSQL cannot say as a number is a row.
func TestInfinity(t *testing.T) {
	t.Parallel()
	d := server.Postgres(t)
	applySchema(t, d.URL())
	execAll(t, d.Open(t), "INSERT INTO leaf_alloc (biz_tag, max_id, step, update_time) VALUES ('a', 1, 7, 'infinity'), ('b', 1, 7, '-infinity')")
	rows, err := open(t, d.URL()).Rows(t.Context())
	if err != nil || len(rows) != 2 || !rows[0].UpdateTime.IsZero() {
		t.Errorf("Rows = %+v, %v; want two without a time", rows, err)
	}
}

// TestNoKey: without its primary key a table can hold a tag twice.
func TestNoKey(t *testing.T) {
	for name, database := range map[string]func(t testing.TB) server.Database{"mysql": server.MariaDB, "postgres": server.Postgres} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := database(t)
			execAll(t, d.Open(t), "CREATE TABLE leaf_alloc (biz_tag varchar(128), max_id bigint, step int, update_time timestamp)",
				"INSERT INTO leaf_alloc (biz_tag, max_id, step) VALUES ('a', 100, 7), ('a', 200, 7)")
			s := open(t, d.URL())
			if err := s.Bind(t.Context(), segment.Binding{Store: "default"}); !errors.Is(err, segment.ErrSchema) || !strings.Contains(err.Error(), `"a"`) {
				t.Errorf("Bind to a table with two rows of a tag = %v; want ErrSchema that names it", err)
			}
			for _, step := range []int64{7, 0} {
				if res, err := s.Reserve(t.Context(), request(step)); !errors.Is(err, segment.ErrSchema) || res != (segment.Reservation{}) {
					t.Errorf("Reserve of a tag with two rows = %v, %v; want ErrSchema", res, err)
				}
			}
			if err := s.ReturnUnused(t.Context(), "a", 300, 250); err == nil {
				t.Error("ReturnUnused to a tag with two rows succeeded")
			}
		})
	}
}

// TestTrigger: behind a trigger on the table the server does not report what
// LAST_INSERT_ID(expr) set. A load does not ask for it.
func TestTrigger(t *testing.T) {
	t.Parallel()
	d := server.MariaDB(t)
	s := open(t, d.URL())
	if _, err := s.ApplySchema(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := s.Create(t.Context(), segment.NewRow{Tag: "a", Start: 1, Step: 7}); err != nil {
		t.Fatal(err)
	}
	execAll(t, d.Open(t), "CREATE TRIGGER audit BEFORE UPDATE ON leaf_alloc FOR EACH ROW SET NEW.update_time = NOW()")
	next := int64(1)
	for range 5 {
		res, err := s.Reserve(t.Context(), request(7))
		if err != nil || res.Range != (leaf.Range{Lo: next, Hi: next + 7}) {
			t.Fatalf("Reserve = %v, %v; want the range from %d", res, err, next)
		}
		next = res.Range.Hi
	}
}

// TestFailingTriggerIsNoUnknownTag: an error about the text of another column says
// nothing about the tag.
func TestFailingTriggerIsNoUnknownTag(t *testing.T) {
	t.Parallel()
	d := server.MariaDB(t)
	s := open(t, d.URL())
	if _, err := s.ApplySchema(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := s.Create(t.Context(), segment.NewRow{Tag: "a", Start: 1, Step: 7}); err != nil {
		t.Fatal(err)
	}
	execAll(t, d.Open(t), "CREATE TABLE audit (tag varchar(0))",
		"CREATE TRIGGER audit AFTER UPDATE ON leaf_alloc FOR EACH ROW INSERT INTO audit VALUES (NEW.biz_tag)")
	for _, step := range []int64{7, 0} {
		if res, err := s.Reserve(t.Context(), request(step)); err == nil || errors.Is(err, leaf.ErrUnknownTag) {
			t.Errorf("Reserve with step %d = %v, %v; want an error that is not ErrUnknownTag", step, res, err)
		}
	}
}

// TestReadOnly: a demoted primary answers, and must not keep its connections
// once it is writable again or replaced.
func TestReadOnly(t *testing.T) {
	t.Parallel()
	i := server.OwnPostgres(t)
	w := startWire(t, i.Database)
	s := open(t, i.Via(w.Addr()).URL())
	if _, err := s.ApplySchema(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := s.Create(t.Context(), segment.NewRow{Tag: "a", Start: 1, Step: 7}); err != nil {
		t.Fatal(err)
	}
	execAll(t, i.Open(t), "ALTER SYSTEM SET default_transaction_read_only = on", "SELECT pg_reload_conf()")
	deadline := time.Now().Add(10 * time.Second)
	for time.Now().Before(deadline) {
		if _, err := s.Reserve(t.Context(), request(7)); err != nil {
			break
		}
	}
	if res, err := s.Reserve(t.Context(), request(7)); err == nil || errors.Is(err, segment.ErrSchema) {
		t.Errorf("Reserve on a read-only server = %v, %v", res, err)
	}
	waitFor(t, "the pool to be emptied", func() bool { return w.Open() == 0 })
}

// TestSilentServer: one deadline on a server that went silent empties the pool,
// so that the dead connections do not cost a deadline each.
func TestSilentServer(t *testing.T) {
	for name, database := range map[string]func(t testing.TB) server.Database{"mysql": server.MariaDB, "postgres": server.Postgres} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := database(t)
			w := startWire(t, d)
			s := open(t, d.Via(w.Addr()).URL())
			if _, err := s.ApplySchema(t.Context()); err != nil {
				t.Fatal(err)
			}
			w.Delay(20 * time.Millisecond) // so that the calls do not take turns on one connection
			done := make(chan error)
			for range 8 {
				go func() { _, err := s.Rows(t.Context()); done <- err }()
			}
			for range 8 {
				if err := <-done; err != nil {
					t.Fatal(err)
				}
			}
			w.Delay(0)
			if w.Open() < 8 {
				t.Fatalf("%d connections for 8 calls", w.Open())
			}
			w.Freeze()
			short, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
			defer cancel()
			if _, err := s.Lookup(short, "a"); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("Lookup: %v; want DeadlineExceeded", err)
			}
			// pgconn asks the server to cancel the statement, and waits for that.
			waitFor(t, "the pool to be emptied", func() bool { return w.Open() <= 2 })
		})
	}
}

// TestConnectTimeout: a server that accepts and then says nothing costs the
// connect timeout, not the caller's deadline.
func TestConnectTimeout(t *testing.T) {
	for name, database := range map[string]func(t testing.TB) server.Database{"mysql": server.MariaDB, "postgres": server.Postgres} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := database(t)
			w := startWire(t, d)
			w.Freeze()
			s, err := sqldb.Open(d.Via(w.Addr()).URL(), sqldb.Config{ConnectTimeout: 50 * time.Millisecond})
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			start := time.Now()
			_, err = s.Lookup(t.Context(), "a")
			if took := time.Since(start); err == nil || errors.Is(err, context.DeadlineExceeded) || took > 5*time.Second {
				t.Errorf("Lookup after %v: %v; want an error of the connection", took, err)
			}
		})
	}
}

// TestOneRoundTrip counts what a load sends on an open connection.
func TestOneRoundTrip(t *testing.T) {
	for name, database := range map[string]func(t testing.TB) server.Database{"mysql": server.MariaDB, "postgres": server.Postgres} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := database(t)
			w := startWire(t, d)
			s := open(t, d.Via(w.Addr()).URL())
			if _, err := s.ApplySchema(t.Context()); err != nil {
				t.Fatal(err)
			}
			if err := s.Create(t.Context(), segment.NewRow{Tag: "a", Start: 1, Step: 7}); err != nil {
				t.Fatal(err)
			}
			sent := w.hook("", proxy.Pass)
			for n := 1; n <= 5; n++ {
				if _, err := s.Reserve(t.Context(), request(7)); err != nil || sent() != n {
					t.Errorf("Reserve: %v, after %d pieces; want one each", err, sent())
				}
			}
		})
	}
}

// waitFor polls what a server does soon.
func waitFor(t *testing.T, what string, cond func() bool) {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); !cond(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("not after 20 s: %s", what)
		}
	}
}
