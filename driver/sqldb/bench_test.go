package sqldb_test

import (
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/leaf-idgen/leaf/driver/sqldb"
	"github.com/leaf-idgen/leaf/internal/test/server"
	"github.com/leaf-idgen/leaf/segment"
)

// BenchmarkReserve compares what a load costs when the step is as believed, and
// when it is not known.
func BenchmarkReserve(b *testing.B) {
	for _, c := range []struct {
		name string
		open func(b *testing.B) (*sqldb.Store, *sql.DB)
		step int64
	}{
		{"mysql/one statement", openMySQL, 7},
		{"mysql/transaction", openMySQL, 0},
		{"postgres/one statement", openPostgres, 7},
		{"sqlite/transaction", openSQLite, 7},
	} {
		b.Run(c.name, func(b *testing.B) {
			s, db := c.open(b)
			fill(b, s, db, 1)
			several := segment.Binding{Store: "a", Rule: "as a node with several databases"}
			change, err := s.UnbindFirst(b.Context(), "bench", several)
			if err == nil {
				err = errors.Join(change.Decide(b.Context(), ""), change.Accept(b.Context()), s.Bind(b.Context(), several))
			}
			if err != nil {
				b.Fatal(err)
			}
			b.ReportAllocs()
			for b.Loop() {
				if _, err := s.Reserve(b.Context(), segment.Request{Tag: "tag 0", Step: c.step, Length: 7, Min: 1, Max: 7}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkPut is what a renewal costs.
func BenchmarkPut(b *testing.B) {
	for _, c := range []struct {
		name string
		open func(b *testing.B) (*sqldb.Store, *sql.DB)
	}{{"mysql", openMySQL}, {"postgres", openPostgres}, {"sqlite", openSQLite}} {
		b.Run(c.name, func(b *testing.B) {
			store, _ := c.open(b)
			if _, err := store.ApplySchema(b.Context()); err != nil {
				b.Fatal(err)
			}
			s, err := store.Records()
			if err != nil {
				b.Fatal(err)
			}
			defer s.Close()
			r := first()
			b.ReportAllocs()
			for b.Loop() {
				r.Bound++
				if r.Version, err = s.Put(b.Context(), r); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkRows reads a table of 100,000 rows.
func BenchmarkRows(b *testing.B) {
	for _, c := range []struct {
		name string
		open func(b *testing.B) (*sqldb.Store, *sql.DB)
	}{{"mysql", openMySQL}, {"postgres", openPostgres}, {"sqlite", openSQLite}} {
		b.Run(c.name, func(b *testing.B) {
			const n = 100_000
			s, db := c.open(b)
			fill(b, s, db, n)
			b.ReportAllocs()
			for b.Loop() {
				if rows, err := s.Rows(b.Context()); err != nil || len(rows) != n {
					b.Fatalf("%d rows, %v", len(rows), err)
				}
			}
		})
	}
}

func openMySQL(b *testing.B) (*sqldb.Store, *sql.DB) {
	b.Helper()
	d := server.MariaDB(b)
	return open(b, d.URL()), d.Open(b)
}

func openPostgres(b *testing.B) (*sqldb.Store, *sql.DB) {
	b.Helper()
	d := server.Postgres(b)
	return open(b, d.URL()), d.Open(b)
}

func openSQLite(b *testing.B) (*sqldb.Store, *sql.DB) {
	b.Helper()
	path := b.TempDir() + "/leaf.db"
	return open(b, "sqlite:"+path), raw(b, path)
}

// fill makes the tables and the rows "tag 0" to "tag n-1".
func fill(b *testing.B, s *sqldb.Store, db *sql.DB, n int) {
	b.Helper()
	if _, err := s.ApplySchema(b.Context()); err != nil {
		b.Fatal(err)
	}
	for i := 0; i < n; {
		var values []string
		for ; i < n && len(values) < 1000; i++ {
			values = append(values, fmt.Sprintf("('tag %d', 1, 7)", i))
		}
		execAll(b, db, "INSERT INTO leaf_alloc (biz_tag, max_id, step) VALUES "+strings.Join(values, ", "))
	}
}
