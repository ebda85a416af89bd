package sqldb_test

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/driver/sqldb"
	"github.com/leaf-idgen/leaf/internal/test/server"
	"github.com/leaf-idgen/leaf/segment"
	"github.com/leaf-idgen/leaf/worker"
)

// broken are the databases whose drivers break, and how to reach them past everything.
var broken = []struct {
	name string
	base func(t testing.TB) (url string, db *sql.DB)
}{
	{"mysql", func(t testing.TB) (string, *sql.DB) { d := server.MariaDB(t); return d.URL(), d.Open(t) }},
	{"postgres", func(t testing.TB) (string, *sql.DB) { d := server.Postgres(t); return d.URL(), d.Open(t) }},
	{"sqlite", func(t testing.TB) (string, *sql.DB) {
		path := filepath.Join(t.TempDir(), "leaf.db")
		db, err := sql.Open("sqlite", "file:"+path+"?_pragma=busy_timeout(5000)")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = db.Close() })
		return "sqlite:" + path, db
	}},
}

// faulty opens a store and a registry whose driver breaks as seam says.
func (s *seam) open(t *testing.T, url string) (*sqldb.Store, *sqldb.Records) {
	t.Helper()
	cfg := sqldb.WithFaults(sqldb.Config{ConnectTimeout: 10 * time.Second, MaxConns: 3, Logger: slog.New(slog.DiscardHandler)}, s.below)
	store, err := sqldb.Open(url, cfg)
	if err != nil {
		t.Fatal(err)
	}
	records, err := store.Records()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		s.trip = func(string, bool) {}
		if err := errors.Join(records.Close(), store.Close()); err != nil {
			t.Error(err)
		}
	})
	return store, records
}

// life is everything that a node does with a database, on one tag and one worker ID,
// beside another node whose driver is sound.
type life struct {
	t      *testing.T
	db     *sql.DB
	store  *sqldb.Store
	other  *sqldb.Store
	claims *sqldb.Records

	served leaf.Range // the highest of all ranges so far
	claim  worker.Record
}

// took checks that a range is above all others, and that the row is at its end or
// beyond to everybody, hence committed.
func (l *life) took(who string, r leaf.Range) {
	l.t.Helper()
	if r.Lo < l.served.Hi {
		l.t.Errorf("%s took %v, and %v was served before", who, r, l.served)
	}
	var maxID int64
	if err := l.db.QueryRowContext(l.t.Context(), "SELECT max_id FROM leaf_alloc WHERE biz_tag = 'a'").Scan(&maxID); err != nil || maxID < r.Hi {
		l.t.Errorf("%s took %v, and the row is at %d, %v", who, r, maxID, err)
	}
	l.served = r
}

func (l *life) reserve(ctx context.Context, step int64) {
	if res, err := l.store.Reserve(ctx, request(step)); err == nil {
		l.took("the node", res.Range)
	}
}

// sound is a load of the other node, which nothing of the first may hold up.
func (l *life) sound(ctx context.Context) {
	l.t.Helper()
	res, err := l.other.Reserve(ctx, request(7))
	if err != nil {
		l.t.Errorf("the other node: %v", err)
		return
	}
	l.took("the other node", res.Range)
}

func (l *life) put(ctx context.Context) {
	next := l.claim
	next.Bound += 1000
	version, err := l.claims.Put(ctx, next)
	if err != nil {
		l.read(ctx)
		return
	}
	var bound int64
	if err := l.db.QueryRowContext(l.t.Context(), "SELECT bound FROM leaf_worker_bound WHERE id = 5").Scan(&bound); err != nil || bound != next.Bound {
		l.t.Errorf("T was written as %d and is %d, %v", next.Bound, bound, err)
	}
	l.claim = next
	l.claim.Version = version
}

// read takes the record over as it is: a Put whose outcome is not known may have been
// carried out, and T never falls.
func (l *life) read(ctx context.Context) {
	all, err := l.claims.List(ctx)
	if err != nil || len(all) != 1 {
		return
	}
	if all[0].Bound < l.claim.Bound {
		l.t.Errorf("T fell from %d to %d", l.claim.Bound, all[0].Bound)
	}
	l.claim = all[0]
}

// parts are all that the node does, cut so that a panic in one call does not run all others again.
var parts = []func(l *life, ctx context.Context){
	func(l *life, ctx context.Context) {
		l.reserve(ctx, 7)
		l.sound(ctx)
		l.reserve(ctx, 0)
	},
	func(l *life, ctx context.Context) {
		if maxID, err := l.store.Raise(ctx, "a", l.served.Hi+100); err == nil {
			l.took("a repair", leaf.Range{Lo: l.served.Hi, Hi: maxID})
		}
	},
	func(l *life, ctx context.Context) {
		if res, err := l.store.Reserve(ctx, request(7)); err == nil {
			// Whatever comes of it, the node never serves this range.
			_ = l.store.ReturnUnused(ctx, "a", res.Range.Hi, res.Range.Lo)
		}
	},
	func(l *life, ctx context.Context) {
		step := int64(7)
		_ = l.store.Update(ctx, "a", segment.Change{Step: &step})
		_, _ = l.store.Lookup(ctx, "a")
		_, _ = l.store.Rows(ctx)
	},
	func(l *life, ctx context.Context) {
		l.put(ctx)
	},
}

func startLife(t *testing.T, base func(t testing.TB) (string, *sql.DB), s *seam) *life {
	t.Helper()
	url, db := base(t)
	applySchema(t, url)
	other := open(t, url)
	if err := other.Create(t.Context(), segment.NewRow{Tag: "a", Start: 1, Step: 7}); err != nil {
		t.Fatal(err)
	}
	l := &life{t: t, db: db, other: other, claim: put(t, openRecords(t, url), first())}
	l.store, l.claims = s.open(t, url)
	return l
}

// TestDriverPanics: the driver panics in each of its calls in turn, before it did what
// it was told and after it. No range comes of what was not committed, nothing of the
// other node waits, and the node itself goes on.
func TestDriverPanics(t *testing.T) {
	t.Parallel()
	for _, b := range broken {
		t.Run(b.name, func(t *testing.T) {
			t.Parallel()
			var mu sync.Mutex // SQLite's readers and a cancelled call come from other goroutines
			var calls, at int
			var site string
			s := &seam{}
			s.trip = func(call string, after bool) {
				mu.Lock()
				defer mu.Unlock()
				if calls++; calls == at {
					site = fmt.Sprintf("%.40s, after: %t", call, after)
					panic("planted in " + site)
				}
			}
			l := startLife(t, b.base, s)
			arm := func(n int) {
				mu.Lock()
				defer mu.Unlock()
				calls, at, site = 0, n, ""
			}
			run := func(part func(*life, context.Context), n int) {
				arm(n)
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				part(l, ctx)
				l.sound(ctx)
			}
			sites := 0
			for _, part := range parts {
				run(part, 0)
				for n := 1; ; n++ {
					run(part, n)
					mu.Lock()
					where := site
					mu.Unlock()
					if where == "" {
						sites += n - 1
						break
					}
					arm(0)
					ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
					res, err := l.store.Reserve(ctx, request(7))
					cancel()
					if err != nil {
						t.Errorf("Reserve after a panic in %s: %v", where, err)
					} else {
						l.took("the node, later", res.Range)
					}
					if t.Failed() {
						t.Fatalf("after a panic in %s", where)
					}
				}
			}
			if t.Logf("%d sites", sites); sites < 50 {
				t.Errorf("the driver was called in only %d places", sites)
			}
		})
	}
}

// TestPanicDropsThePool: after a panic no connection that was made before is used again,
// neither one that was idle nor one that was busy then.
func TestPanicDropsThePool(t *testing.T) {
	for _, b := range broken {
		t.Run(b.name, func(t *testing.T) {
			t.Parallel()
			var armed atomic.Bool
			s := &seam{}
			s.trip = func(call string, after bool) {
				if strings.HasPrefix(call, "Query") && after && armed.CompareAndSwap(true, false) {
					panic("planted")
				}
			}
			l := startLife(t, b.base, s)
			busy, end, ended := make(chan struct{}), make(chan struct{}), make(chan error)
			go func() {
				ended <- l.store.Transact(t.Context(), "UPDATE leaf_alloc SET description = 'x' WHERE biz_tag = 'none'", func() { close(busy); <-end })
			}()
			<-busy
			var idle sync.WaitGroup
			for range 2 {
				idle.Go(func() { _, _ = l.store.Lookup(t.Context(), "a") })
			}
			idle.Wait()
			armed.Store(true)
			if _, err := l.store.Lookup(t.Context(), "a"); err == nil || !strings.Contains(err.Error(), "panicked") {
				t.Fatalf("Lookup whose driver panics: %v", err)
			}
			close(end)
			if err := <-ended; err != nil {
				t.Error(err)
			}
			before := s.connections.Load()
			s.oldest.Store(math.MaxInt64)
			for range 5 {
				l.reserve(t.Context(), 7)
				if _, err := l.store.Lookup(t.Context(), "a"); err != nil {
					t.Error(err)
				}
			}
			if oldest := s.oldest.Load(); oldest <= before {
				t.Errorf("connection %d of %d of before the panic is used again", oldest, before)
			}
		})
	}
}

// TestPanicInATransaction: what panics between two statements of a transaction, outside
// of the driver, leaves no transaction behind for the next call to run in.
func TestPanicInATransaction(t *testing.T) {
	for _, b := range broken {
		t.Run(b.name, func(t *testing.T) {
			t.Parallel()
			l := startLife(t, b.base, &seam{trip: func(string, bool) {}})
			for range 5 { // more than there are connections
				func() {
					defer func() {
						if recover() == nil {
							t.Error("the panic is gone")
						}
					}()
					_ = l.store.Transact(t.Context(), "UPDATE leaf_alloc SET max_id = max_id + 1000", func() { panic("planted") })
				}()
				l.reserve(t.Context(), 7)
				l.sound(t.Context())
			}
			if l.served.Hi > 1000 {
				t.Errorf("a transaction that panicked was committed: the row is at %d", l.served.Hi)
			}
		})
	}
}

// TestAnswersOfOthers: two connections exchange their answers, as a proxy or a driver
// does that has lost count, or answers end early. No range comes of it.
func TestAnswersOfOthers(t *testing.T) {
	for _, b := range broken[:2] {
		t.Run(b.name, func(t *testing.T) {
			t.Parallel()
			s := &seam{trip: func(string, bool) {}}
			l := startLife(t, b.base, s)
			if err := l.other.Create(t.Context(), segment.NewRow{Tag: "b", Start: 1000, Step: 7}); err != nil {
				t.Fatal(err)
			}
			for _, pair := range []struct {
				tags   [2]string
				longer int64 // the second range: its length alone shows that it is another's
			}{{[2]string{"a", "b"}, 1}, {[2]string{"a", "a"}, 1}, {[2]string{"a", "b"}, 0}} {
				s.answer = exchange()
				var group sync.WaitGroup
				for i, tag := range pair.tags {
					group.Go(func() {
						req := request(7)
						req.Tag, req.Length = tag, 7+int64(i)*pair.longer
						if res, err := l.store.Reserve(t.Context(), req); err == nil || res != (segment.Reservation{}) {
							t.Errorf("Reserve(%q) with the answer of another = %v, %v; want no range", tag, res, err)
						}
					})
				}
				group.Wait()
			}
			for sets := range 3 {
				s.answer = func(query string, rows driver.Rows) driver.Rows {
					if !strings.Contains(query, "max_id + ") {
						return rows
					}
					a := readAnswer(rows)
					a.sets = append([][][]driver.Value(nil), a.sets[:min(sets+1, len(a.sets))]...)
					a.sets[len(a.sets)-1] = nil
					return a
				}
				res, err := l.store.Reserve(t.Context(), request(7))
				if err == nil {
					l.took("after an answer that was cut", res.Range)
				}
			}
			s.answer = nil
			l.reserve(t.Context(), 7)
			l.sound(t.Context())
		})
	}
}

// exchange makes each two answers to a load change places.
func exchange() func(query string, rows driver.Rows) driver.Rows {
	meet := make(chan *answer)
	return func(query string, rows driver.Rows) driver.Rows {
		if !strings.Contains(query, "max_id + ") {
			return rows
		}
		mine := readAnswer(rows)
		select {
		case meet <- mine:
			return <-meet
		case other := <-meet:
			meet <- mine
			return other
		}
	}
}
