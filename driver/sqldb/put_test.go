package sqldb_test

import (
	"context"
	"database/sql"
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
	"github.com/leaf-idgen/leaf/worker"
)

// first is the first record of number 5.
func first() worker.Record {
	return worker.Record{Number: 5, Address: "10.0.0.1:8080", Nonce: "it's \\ 我", Floor: 1000, Bound: 61_000}
}

// put expects to write r, and returns it with its version.
func put(t *testing.T, s worker.Records, r worker.Record) worker.Record {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	version, err := s.Put(ctx, r)
	if err != nil {
		t.Fatalf("Put(%+v): %v", r, err)
	}
	r.Version = version
	return r
}

// only expects that there is one record.
func only(t *testing.T, s *sqldb.Records) worker.Record {
	t.Helper()
	all, err := s.List(t.Context())
	if err != nil || len(all) != 1 {
		t.Fatalf("List = %+v, %v; want one record", all, err)
	}
	return all[0]
}

// TestPutReadsBack: the version that Put returns is that of the record in the list,
// so that a claimer which listed may overwrite what an owner wrote.
func TestPutReadsBack(t *testing.T) {
	eachBase(t, func(t *testing.T, url string, _ *sql.DB) {
		s := openRecords(t, url)
		r := put(t, s, first())
		if got := only(t, s); got != r {
			t.Errorf("List = %+v; want %+v", got, r)
		}
		r.Released, r.Nonce, r.Bound = true, "", 1500
		again := put(t, openRecords(t, url), r)
		if got := only(t, s); got != again || again.Version == r.Version {
			t.Errorf("List = %+v; want %+v with a new version", got, again)
		}
		if same := put(t, s, again); same.Version == again.Version {
			t.Errorf("two writes of one content have the version %q", same.Version)
		}
	})
}

// TestPutCompares: whatever somebody else does to the rows of a number, the owner's
// next write is refused and changes nothing, and T is not lost but with both rows.
func TestPutCompares(t *testing.T) {
	eachBase(t, func(t *testing.T, url string, db *sql.DB) {
		s := openRecords(t, url)
		yes := "1"
		if strings.HasPrefix(url, "postgres") {
			yes = "true"
		}
		for _, c := range []struct {
			name       string
			statements []string
			bound      int64 // T in the list afterwards; 0: no record
			nonce      string
		}{
			{"claim deleted", []string{"DELETE FROM leaf_worker"}, 61_000, ""},
			{"bound deleted", []string{"DELETE FROM leaf_worker_bound"}, 61_000, first().Nonce},
			{"both deleted", []string{"DELETE FROM leaf_worker", "DELETE FROM leaf_worker_bound"}, 0, ""},
			{"nonce overwritten", []string{"UPDATE leaf_worker SET nonce = 'other'"}, 61_000, "other"},
			{"address overwritten", []string{"UPDATE leaf_worker SET address = 'other:1'"}, 61_000, first().Nonce},
			{"released", []string{"UPDATE leaf_worker SET released = " + yes}, 61_000, first().Nonce},
			{"floor raised", []string{"UPDATE leaf_worker SET floor = floor + 1"}, 61_000, first().Nonce},
			{"bound raised", []string{"UPDATE leaf_worker_bound SET bound = bound + 1"}, 61_001, first().Nonce},
			{"bound lowered", []string{"UPDATE leaf_worker_bound SET bound = 1"}, 61_000, first().Nonce},
			{"version of the bound", []string{"UPDATE leaf_worker_bound SET version = 'x/y'"}, 61_000, first().Nonce},
			{"version of the claim", []string{"UPDATE leaf_worker SET version = 'x'"}, 61_000, first().Nonce},
		} {
			t.Run(c.name, func(t *testing.T) {
				execAll(t, db, "DELETE FROM leaf_worker", "DELETE FROM leaf_worker_bound")
				r := put(t, s, first())
				execAll(t, db, c.statements...)
				before, err := s.List(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				switch {
				case c.bound == 0 && len(before) == 0:
				case len(before) != 1 || before[0].Bound != c.bound || before[0].Nonce != c.nonce || before[0].Version == r.Version:
					t.Fatalf("List = %+v; want T %d, nonce %q and another version than %q", before, c.bound, c.nonce, r.Version)
				}
				next := r
				next.Bound += 1000
				for range 2 {
					if version, err := s.Put(t.Context(), next); !errors.Is(err, worker.ErrLost) || version != "" {
						t.Fatalf("Put over it = %q, %v; want ErrLost", version, err)
					}
				}
				if after, err := s.List(t.Context()); err != nil || !slices.Equal(after, before) {
					t.Errorf("List after the refused Put = %+v, %v; want %+v", after, err, before)
				}
				if len(before) == 0 {
					next.Version, next.Bound = "", 1
				} else {
					next.Version = before[0].Version
				}
				if got := put(t, s, next); got.Version == r.Version || only(t, s) != got {
					t.Errorf("a claim of what is there = %+v; want a version that was never used", got)
				}
			})
		}
	})
}

// TestPutNothingThere: a record without a version is only for a number that has
// neither claim nor T.
func TestPutNothingThere(t *testing.T) {
	eachBase(t, func(t *testing.T, url string, db *sql.DB) {
		s := openRecords(t, url)
		for _, c := range []struct {
			name       string
			statements []string
		}{
			{"claim and T", nil},
			{"T only", []string{"DELETE FROM leaf_worker"}},
			{"claim only", []string{"DELETE FROM leaf_worker_bound"}},
		} {
			t.Run(c.name, func(t *testing.T) {
				execAll(t, db, "DELETE FROM leaf_worker", "DELETE FROM leaf_worker_bound")
				put(t, s, first())
				execAll(t, db, c.statements...)
				before := only(t, s)
				if _, err := s.Put(t.Context(), first()); !errors.Is(err, worker.ErrLost) {
					t.Errorf("Put over %+v: %v; want ErrLost", before, err)
				}
				if after := only(t, s); after != before {
					t.Errorf("List = %+v; want %+v", after, before)
				}
			})
		}
	})
}

// TestPutRace: of many that write over one version, one wins.
func TestPutRace(t *testing.T) {
	eachBase(t, func(t *testing.T, url string, db *sql.DB) {
		const writers, rounds = 16, 4
		handles := make([]*sqldb.Records, writers)
		for i := range handles {
			handles[i] = openRecords(t, url)
		}
		r := first()
		for round := range rounds {
			if round == 2 {
				execAll(t, db, "DELETE FROM leaf_worker")
				r = only(t, handles[0])
			}
			var mu sync.Mutex
			var won []worker.Record
			var group sync.WaitGroup
			for i, s := range handles {
				next := r
				next.Nonce, next.Bound = fmt.Sprint("writer ", i), r.Bound+int64(i)
				group.Go(func() {
					version, err := s.Put(t.Context(), next)
					if err != nil {
						if !errors.Is(err, worker.ErrLost) {
							t.Errorf("Put: %v", err)
						}
						return
					}
					mu.Lock()
					defer mu.Unlock()
					next.Version = version
					won = append(won, next)
				})
			}
			group.Wait()
			if len(won) != 1 || only(t, handles[0]) != won[0] {
				t.Fatalf("round %d: %+v won, and %+v is stored", round, won, only(t, handles[0]))
			}
			r = won[0]
		}
	})
}

// TestClaimersAfterDeletion: DELETE FROM leaf_worker while nodes run, which then all
// claim at once, gives nobody a number below its T.
func TestClaimersAfterDeletion(t *testing.T) {
	eachBase(t, claimersAfterDeletion)
	t.Run("postgres/serializable", func(t *testing.T) {
		t.Parallel()
		f := named("postgres/serializable")
		d := f.database(t)
		execAll(t, d.Open(t), f.once...)
		applySchema(t, d.URL())
		claimersAfterDeletion(t, d.URL(), d.Open(t))
	})
}

func claimersAfterDeletion(t *testing.T, url string, db *sql.DB) {
	const n, now = 16, 1_763_000_000_000
	numbers := leaf.Range{Lo: 0, Hi: n}
	claim := func(now int64) map[int64]worker.Record {
		var mu sync.Mutex
		got := map[int64]worker.Record{}
		var group sync.WaitGroup
		for i := range n {
			p := worker.NewPool(openRecords(t, url))
			group.Go(func() {
				r, err := p.Claim(t.Context(), worker.Request{
					Namespace: worker.Namespace{Name: "test", Fingerprint: "layout"}, Address: fmt.Sprint("10.0.0.", i, ":1"), Nonce: fmt.Sprint(now, " ", i),
					Numbers: numbers, Now: now, Bound: now + 60_000, Margin: 5000,
				})
				mu.Lock()
				defer mu.Unlock()
				if err != nil {
					t.Errorf("Claim: %v", err)
				} else if _, taken := got[r.Number]; taken {
					t.Errorf("number %d was given twice", r.Number)
				}
				got[r.Number] = r
			})
		}
		group.Wait()
		return got
	}
	before := claim(now)
	execAll(t, db, "DELETE FROM leaf_worker")
	for number, r := range claim(now + 70_000) {
		if r.Floor < before[number].Bound {
			t.Errorf("number %d: floor %d lies below T %d", number, r.Floor, before[number].Bound)
		}
	}
}

// TestLostReply: the reply to a COMMIT is lost. The owner knows nothing, and finds
// out by asking.
func TestLostReply(t *testing.T) {
	for _, c := range []struct {
		name, text string
		action     proxy.Action
		written    bool
	}{
		{"before the bound", "leaf_worker_bound", proxy.CutNow, false},
		{"after the claim", "INSERT INTO leaf_worker ", proxy.CutReply, false},
		{"before COMMIT", "COMMIT", proxy.CutNow, false},
		{"after COMMIT", "COMMIT", proxy.CutReply, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			for name, database := range map[string]func(t testing.TB) server.Database{"mysql": server.MariaDB, "postgres": server.Postgres} {
				t.Run(name, func(t *testing.T) {
					t.Parallel()
					d := database(t)
					applySchema(t, d.URL())
					w := startWire(t, d)
					s := openRecords(t, d.Via(w.Addr()).URL())
					if _, err := s.List(t.Context()); err != nil {
						t.Fatal(err)
					}
					text := c.text
					if text == "COMMIT" && name == "postgres" {
						text = "COMMIT\x00" // not COMMITTED
					}
					w.hook(text, c.action)
					version, err := s.Put(t.Context(), first())
					if err == nil || errors.Is(err, worker.ErrLost) || version != "" {
						t.Fatalf("Put = %q, %v; want an error that says nothing", version, err)
					}
					w.Heal()
					waitFor(t, "the server to end the transaction", func() bool {
						all, err := s.List(t.Context())
						return err == nil && (len(all) == 1) == c.written
					})
					if c.written {
						r := only(t, s)
						r.Bound += 1000
						put(t, s, r)
						return
					}
					put(t, s, first())
				})
			}
		})
	}
}

// TestUncommitted: a claim that is not committed is not shown, whatever the server's
// default isolation, because its writer would take it for its own.
func TestUncommitted(t *testing.T) {
	t.Parallel()
	i := server.OwnMariaDB(t)
	applySchema(t, i.URL())
	db := i.Open(t)
	execAll(t, db, "SET GLOBAL tx_isolation = 'READ-UNCOMMITTED'")
	tx, err := db.BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer rollback(t, tx)()
	for _, statement := range []string{
		"INSERT INTO leaf_worker_namespace (id, name, fingerprint, issue_from) VALUES (1, 'a', 'b', 0)",
		"INSERT INTO leaf_worker_bound (id, bound, version) VALUES (5, 61000, 'v')",
		"INSERT INTO leaf_worker (id, address, nonce, floor, bound, released, extends, version) VALUES (5, 'a', 'mine', 0, 61000, 0, 0, 'v')",
	} {
		if _, err := tx.ExecContext(t.Context(), statement); err != nil {
			t.Fatal(err)
		}
	}
	s := openRecords(t, i.URL())
	if all, err := s.List(t.Context()); err != nil || len(all) != 0 {
		t.Errorf("List = %+v, %v; want none", all, err)
	}
	if n, err := s.Namespace(t.Context(), nil); err != nil || n != nil {
		t.Errorf("Namespace = %+v, %v; want none", n, err)
	}
}

// TestLockedClaim: somebody who locks a row and goes away costs a deadline, and no
// other number.
func TestLockedClaim(t *testing.T) {
	for _, b := range bases[:2] {
		t.Run(b.name, func(t *testing.T) {
			t.Parallel()
			url, db := b.base(t)
			applySchema(t, url)
			s := openRecords(t, url)
			r, other := put(t, s, first()), first()
			other.Number = 6
			other = put(t, s, other)
			tx, err := db.BeginTx(t.Context(), nil)
			if err != nil {
				t.Fatal(err)
			}
			unlock := rollback(t, tx)
			if _, err := tx.ExecContext(t.Context(), "UPDATE leaf_worker_bound SET bound = bound + 1 WHERE id = 5"); err != nil {
				t.Fatal(err)
			}
			short, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
			defer cancel()
			if _, err := s.Put(short, r); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("Put of a locked number: %v; want DeadlineExceeded", err)
			}
			put(t, s, other)
			if _, err := s.List(t.Context()); err != nil {
				t.Error(err)
			}
			unlock()
			put(t, s, r)
		})
	}
}

// TestDeadlock: a transaction that the server sacrifices is begun again, so that an
// operator's statement costs the owner nothing but time.
func TestDeadlock(t *testing.T) {
	t.Parallel()
	d := server.MariaDB(t)
	applySchema(t, d.URL())
	s := openRecords(t, d.URL())
	r := put(t, s, first())
	db := d.Open(t)
	tx, err := db.BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	do := func(statement string) {
		t.Helper()
		if _, err := tx.ExecContext(t.Context(), statement); err != nil {
			t.Fatal(err)
		}
	}
	// The server sacrifices whoever has written less.
	for i := range 20 {
		do(fmt.Sprintf("INSERT INTO leaf_worker_peer (nonce, address, clock, number, expires) VALUES ('%d', '', '', 0, 0)", i))
	}
	do("UPDATE leaf_worker SET floor = floor + 1 WHERE id = 5")
	ended := make(chan error)
	go func() { _, err := s.Put(t.Context(), r); ended <- err }()
	waitFor(t, "the owner to wait for its claim", func() bool {
		var waiting int
		time.Sleep(150 * time.Millisecond) // the server renews this table only if nobody has read it for 100 ms
		err := db.QueryRowContext(t.Context(), "SELECT COUNT(*) FROM information_schema.INNODB_TRX"+
			" WHERE trx_state = 'LOCK WAIT' AND trx_query LIKE '%FROM leaf_worker WHERE id = 5%'").Scan(&waiting)
		return err == nil && waiting > 0
	})
	do("UPDATE leaf_worker_bound SET bound = bound + 1 WHERE id = 5")
	if err := tx.Rollback(); err != nil {
		t.Error(err)
	}
	if err := <-ended; err != nil {
		t.Errorf("Put: %v", err)
	}
}

// TestTwoRows: in tables that somebody made without their keys a number means nothing.
func TestTwoRows(t *testing.T) {
	t.Parallel()
	d := server.MariaDB(t)
	applySchema(t, d.URL())
	for _, table := range []string{"leaf_worker", "leaf_worker_bound"} {
		t.Run(table, func(t *testing.T) {
			s := openRecords(t, d.URL())
			r := first()
			execAll(t, d.Open(t), "DELETE FROM leaf_worker", "DELETE FROM leaf_worker_bound")
			r = put(t, s, r)
			execAll(t, d.Open(t), "ALTER TABLE "+table+" DROP PRIMARY KEY", "INSERT INTO "+table+" SELECT * FROM "+table)
			if all, err := s.List(t.Context()); !errors.Is(err, worker.ErrSchema) {
				t.Errorf("List = %+v, %v; want ErrSchema", all, err)
			}
			if _, err := s.Put(t.Context(), r); !errors.Is(err, worker.ErrSchema) {
				t.Errorf("Put: %v; want ErrSchema", err)
			}
			execAll(t, d.Open(t), "DELETE FROM "+table, "ALTER TABLE "+table+" ADD PRIMARY KEY (id)")
		})
	}
}
