package sqldb_test

import (
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"math"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/driver/sqldb"
	"github.com/leaf-idgen/leaf/internal/takeover"
	"github.com/leaf-idgen/leaf/internal/test/server"
)

// sourceServers are the servers on which other services count.
var sourceServers = map[string]func(testing.TB) server.Database{"MariaDB": server.MariaDB, "MySQL": server.MySQL, "PostgreSQL": server.Postgres}

func openSource(t testing.TB, kind, url string) *sqldb.Source {
	t.Helper()
	s, err := sqldb.OpenSource(kind, url, sqldb.Config{ConnectTimeout: 5 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func counters(t testing.TB, s *sqldb.Source, names ...string) []takeover.Counter {
	t.Helper()
	all, err := s.Counters(t.Context(), names...)
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// The tables of the services that count in rows, for all dialects. Types are the services' own.
const (
	tinyidTable = "CREATE TABLE tiny_id_info (id bigint NOT NULL PRIMARY KEY, biz_type varchar(63) NOT NULL UNIQUE, begin_id bigint NOT NULL DEFAULT 0," +
		" max_id bigint NOT NULL DEFAULT 0, step int DEFAULT 0, delta int NOT NULL DEFAULT 1, remainder int NOT NULL DEFAULT 0, version bigint NOT NULL DEFAULT 0)"
	cosidTable = "CREATE TABLE cosid (name varchar(100) NOT NULL PRIMARY KEY, last_max_id %s NOT NULL DEFAULT 0, last_fetch_time %[1]s NOT NULL DEFAULT 0)"
	leafTable  = "CREATE TABLE leaf_alloc (biz_tag varchar(128) NOT NULL PRIMARY KEY, max_id bigint NOT NULL DEFAULT 1, step int NOT NULL," +
		" description varchar(256), update_time timestamp NOT NULL DEFAULT CURRENT_TIMESTAMP)"
)

// TestSourceRows reads rows of each service as it writes them, on each server.
func TestSourceRows(t *testing.T) {
	t.Parallel()
	for name, database := range sourceServers {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := database(t)
			unsigned := "bigint unsigned"
			if name == "PostgreSQL" {
				unsigned = "bigint"
			}
			execAll(t, d.Open(t), tinyidTable, fmt.Sprintf(cosidTable, unsigned), leafTable,
				"INSERT INTO tiny_id_info (id, biz_type, max_id, step, delta, remainder) VALUES (1, 'order', 4200000, 100000, 1, 0), (2, 'odd', 7, 10, 2, 1),"+
					" (3, 'new', 0, 5, 1, 0), (4, 'below', -1, 5, 1, 0), (5, 'wild', 7, 5, 0, 0), (6, 'far', 9223372036854775807, 5, 1, 0), (7, 'no step', 7, NULL, 1, 0), (8, 'beyond', 7, 10, 2, 2)",
				"INSERT INTO cosid (name, last_max_id) VALUES ('shop.order', 5000), ('shop.new', 0)",
				"INSERT INTO leaf_alloc (biz_tag, max_id, step) VALUES ('order', 2001, 2000)")
			type row struct {
				End, Step, Modulus, Residue int64
				Unusable                    bool
			}
			for kind, want := range map[string]map[string]row{
				"tinyid": {
					"order": {4200001, 100000, 1, 0, false}, "odd": {8, 10, 2, 1, false}, "new": {1, 5, 1, 0, false}, "no step": {8, 0, 1, 0, false},
					"below": {-1, 5, 1, 0, true}, "wild": {8, 5, 0, 0, true}, "far": {-1, 5, 1, 0, true}, "beyond": {8, 10, 2, 2, true},
				},
				"cosid": {"shop.order": {End: 5001}, "shop.new": {End: 1}},
				"fork":  {"order": {End: 2001, Step: 2000}},
			} {
				s := openSource(t, kind, d.URL())
				got := map[string]row{}
				for _, c := range counters(t, s) {
					got[c.Name] = row{c.End, c.Step, c.Modulus, c.Residue, c.Problem != ""}
					if c.Name == "far" && !strings.Contains(c.Problem, "max_id 9223372036854775807") {
						t.Errorf("a number that is too large: %q", c.Problem)
					}
					if c.From != d.Redacted() && !strings.Contains(c.From, "xxxxx") {
						t.Errorf("%s: from %q", kind, c.From)
					}
				}
				if diff := cmp.Diff(want, got); diff != "" {
					t.Errorf("%s (-want +got):\n%s", kind, diff)
				}
				if some := counters(t, s, "order", "nope", "shop.order"); len(some) != 1 {
					t.Errorf("%s: one name of three gives %+v", kind, some)
				}
			}
			if name == "PostgreSQL" {
				return
			}
			execAll(t, d.Open(t), "INSERT INTO cosid (name, last_max_id) VALUES ('huge', 18446744073709551615)")
			if c := counters(t, openSource(t, "cosid", d.URL()), "huge"); len(c) != 1 || c[0].Problem == "" {
				t.Errorf("a number above 2^63: got %+v, want a problem", c)
			}
		})
	}
}

// TestSourceIsNotThatService: a database without the table of the service is a mistake of the
// operator, not an empty service.
func TestSourceIsNotThatService(t *testing.T) {
	t.Parallel()
	d := server.MariaDB(t)
	for _, kind := range []string{"tinyid", "cosid", "fork"} {
		if all, err := openSource(t, kind, d.URL()).Counters(t.Context()); !errors.Is(err, leaf.ErrBadRequest) || len(all) > 0 {
			t.Errorf("%s: got %+v, %v; want a bad request", kind, all, err)
		}
	}
	applySchema(t, d.URL())
	if _, err := openSource(t, "fork", d.URL()).Counters(t.Context()); err != nil {
		t.Errorf("fork, in a table that no node has used: %v", err)
	}
	if _, err := open(t, d.URL()).ClusterID(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := openSource(t, "fork", d.URL()).Counters(t.Context()); !errors.Is(err, leaf.ErrConflict) || !strings.Contains(err.Error(), "nothing to take over") {
		t.Errorf("fork, in the nodes' own database: got %v, want a conflict", err)
	}
	for _, bad := range [][2]string{{"redis", d.URL()}, {"tinyid", "sqlite:x.db"}, {"tinyid", "mysql://host"}} {
		if _, err := sqldb.OpenSource(bad[0], bad[1], sqldb.Config{}); !errors.Is(err, leaf.ErrBadRequest) {
			t.Errorf("%v: got %v, want a bad request", bad, err)
		}
	}
}

// TestSourceWithoutItsDatabase: a name that is spelled wrong is corrected. No tables of Leaf are made there.
func TestSourceWithoutItsDatabase(t *testing.T) {
	t.Parallel()
	for name, database := range sourceServers {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			u, err := url.Parse(database(t).URL())
			if err != nil {
				t.Fatal(err)
			}
			u.Path += "_not_there"
			_, err = openSource(t, "tinyid", u.String()).Counters(t.Context())
			if !errors.Is(err, leaf.ErrBadRequest) || !strings.Contains(err.Error(), "correct the name in the URL") || strings.Contains(err.Error(), "schema apply") {
				t.Errorf("got %v, want that the name is corrected", err)
			}
		})
	}
}

// TestReplicaIsNoSource: what a replica shows may be old.
func TestReplicaIsNoSource(t *testing.T) {
	t.Parallel()
	i := server.OwnMariaDB(t)
	const row = "INSERT INTO tiny_id_info (id, biz_type, max_id) VALUES (1, 'order', 7)"
	execAll(t, i.Open(t), tinyidTable, row, "SET GLOBAL read_only = 1")
	if _, err := openSource(t, "tinyid", i.URL()).Counters(t.Context()); !errors.Is(err, leaf.ErrConflict) || !strings.Contains(err.Error(), "replica") {
		t.Errorf("MariaDB: got %v, want that it is a replica", err)
	}
	d := server.Postgres(t)
	execAll(t, d.Open(t), tinyidTable, row, "CREATE FUNCTION public.pg_is_in_recovery() RETURNS boolean LANGUAGE sql AS 'SELECT true'")
	if _, err := openSource(t, "tinyid", d.URL()+"&search_path=public,pg_catalog").Counters(t.Context()); !errors.Is(err, leaf.ErrConflict) {
		t.Errorf("PostgreSQL: got %v, want that it is a replica", err)
	}
}

// TestStopRows: after the statement, the database lets the service count to the last number below
// the tag's first, and no further. The session of the operator is not as those of the service.
func TestStopRows(t *testing.T) {
	t.Parallel()
	for name, database := range sourceServers {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := database(t)
			db := d.Open(t)
			const odd = `it's 50% \off`
			quoted := strings.ReplaceAll(odd, "'", "''")
			if name != "PostgreSQL" {
				quoted = strings.ReplaceAll(quoted, `\`, `\\`)
			}
			operator := d.Open(t)
			operator.SetMaxOpenConns(1)
			if name != "PostgreSQL" {
				execAll(t, operator, "SET NAMES latin1, @@session.sql_mode = 'NO_BACKSLASH_ESCAPES'")
			} else {
				execAll(t, operator, "SET client_encoding = 'LATIN1'", "SET standard_conforming_strings = off")
			}
			tags := []string{"order", quoted, "订单"}
			execAll(t, db, tinyidTable, fmt.Sprintf(cosidTable, "bigint"), leafTable)
			for i, tag := range tags {
				execAll(t, db, fmt.Sprintf("INSERT INTO tiny_id_info (id, biz_type, max_id, step) VALUES (%d, '%s', 100, 10)", i, tag),
					"INSERT INTO cosid (name, last_max_id) VALUES ('"+tag+"', 100)", "INSERT INTO leaf_alloc (biz_tag, max_id, step) VALUES ('"+tag+"', 101, 10)")
			}
			for kind, update := range map[string]string{
				"tinyid": "UPDATE tiny_id_info SET max_id = %d WHERE biz_type = '%s'",
				"cosid":  "UPDATE cosid SET last_max_id = %d WHERE name = '%s'",
				"fork":   "UPDATE leaf_alloc SET max_id = %d WHERE biz_tag = '%s'",
			} {
				last := int64(149) // the highest number that the service may hand out
				if kind == "fork" {
					last++ // its max_id lies above
				}
				for _, c := range counters(t, openSource(t, kind, d.URL())) {
					execAll(t, operator, c.Stop(150))
				}
				for _, tag := range tags {
					execAll(t, db, fmt.Sprintf(update, last, tag))
					if _, err := db.ExecContext(t.Context(), fmt.Sprintf(update, last+1, tag)); err == nil {
						t.Errorf("%s %s: the database lets it go to %d", kind, tag, last+1)
					}
				}
			}
		})
	}
}

// TestCheckIsIgnored: where the server ignores CHECK, no plan shows one as what stops the service.
func TestCheckIsIgnored(t *testing.T) {
	t.Parallel()
	for version, want := range map[string]bool{
		"5.6.51": false, "5.7.44-log": false, "8.0.15": false, "8.0.16": true, "8.0.36-0ubuntu0.22.04.1": true, "8.4.3": true, "9.7.0": true,
		"5.5.68-MariaDB": false, "10.1.48-MariaDB": false, "10.2.0-MariaDB": false, "10.2.1-MariaDB": true, "10.11.6-MariaDB-0+deb12u1": true,
		"5.5.5-10.1.48-MariaDB": false, "5.5.5-10.11.6-MariaDB": true, "5.7.25-TiDB-v6.5.0": false, "8.0.11-TiDB-v8.5.0": false, "": false, "unknown": false,
	} {
		if got := sqldb.ChecksRows(version); got != want {
			t.Errorf("%q: obeys CHECK: %v, want %v", version, got, want)
		}
	}
	for name, database := range sourceServers {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := database(t)
			execAll(t, d.Open(t), tinyidTable, "INSERT INTO tiny_id_info (id, biz_type, max_id) VALUES (1, 'order', 7)")
			old := &seam{trip: func(string, bool) {}, answer: func(query string, rows driver.Rows) driver.Rows {
				if query != "SELECT VERSION()" {
					return rows
				}
				_ = rows.Close()
				return &oneText{text: "5.7.44-log"}
			}}
			s, err := sqldb.OpenSource("tinyid", d.URL(), sqldb.WithFaults(sqldb.Config{ConnectTimeout: 5 * time.Second}, old.below))
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = s.Close() })
			want := "5.7.44-log"
			if name == "PostgreSQL" {
				want = "" // every version obeys CHECK
			}
			if got := counters(t, s); len(got) != 1 || got[0].Unchecked != want || (got[0].Stop == nil) != (want != "") {
				t.Errorf("an old server: got %+v, want the version %q, and a statement only without it", got, want)
			}
			if got := counters(t, openSource(t, "tinyid", d.URL())); len(got) != 1 || got[0].Unchecked != "" || got[0].Stop == nil {
				t.Errorf("this server: got %+v, want a statement", got)
			}
		})
	}
}

// oneText is a row with a text.
type oneText struct {
	text string
	read bool
}

func (r *oneText) Columns() []string { return []string{"text"} }
func (r *oneText) Close() error      { return nil }
func (r *oneText) Next(dest []driver.Value) error {
	if r.read {
		return io.EOF
	}
	dest[0], r.read = r.text, true
	return nil
}

// TestSourceHasNoLargerNumber: what is read never leads to a tag that begins outside of the
// numbers of a row.
func TestSourceHasNoLargerNumber(t *testing.T) {
	t.Parallel()
	d := server.Postgres(t)
	execAll(t, d.Open(t), "CREATE SEQUENCE far", fmt.Sprintf("SELECT setval('far', %d)", int64(math.MaxInt64)), "CREATE SEQUENCE near")
	got := counters(t, openSource(t, "autoincrement", d.URL()))
	if len(got) != 2 || got[0].Problem == "" || got[1].Problem != "" || got[1].End != 3 {
		t.Errorf("got %+v, want a problem with far, and near at 3", got)
	}
}

// TestSourceNeedsSelect: a user with SELECT is enough, and one without it gets no number.
func TestSourceNeedsSelect(t *testing.T) {
	t.Parallel()
	for name, database := range sourceServers {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := database(t)
			db := d.Open(t)
			id := "bigint NOT NULL AUTO_INCREMENT PRIMARY KEY"
			if name == "PostgreSQL" {
				id = "bigint GENERATED BY DEFAULT AS IDENTITY PRIMARY KEY"
			}
			execAll(t, db, tinyidTable, "INSERT INTO tiny_id_info (id, biz_type, max_id) VALUES (1, 'order', 7)", "CREATE TABLE orders (id "+id+", note text)")
			insertRow := "INSERT INTO orders (note) VALUES ('x')"
			execAll(t, db, insertRow, insertRow)
			user := makeUser(t, db, d)
			url := as(t, d, strings.Trim(user, `'"`), "secret")
			if _, err := openSource(t, "tinyid", url).Counters(t.Context()); err == nil {
				t.Error("tinyid without a right: got no error")
			} else if strings.Contains(err.Error(), "UPDATE") {
				t.Errorf("tinyid without a right: got %v, want no word of the right to write", err)
			}
			if all, err := openSource(t, "autoincrement", url).Counters(t.Context()); err == nil {
				for _, c := range all {
					if c.Problem == "" {
						t.Errorf("autoincrement without a right: got %+v, want a problem", c)
					}
				}
			}
			if name == "PostgreSQL" {
				execAll(t, db, "GRANT SELECT ON ALL TABLES IN SCHEMA public TO "+user, "GRANT SELECT ON ALL SEQUENCES IN SCHEMA public TO "+user)
			} else {
				execAll(t, db, "GRANT SELECT ON "+d.Name()+".* TO "+user)
			}
			if all := counters(t, openSource(t, "tinyid", url)); len(all) != 1 || all[0].End != 8 {
				t.Errorf("tinyid: got %+v, want one at 8", all)
			}
			if all := counters(t, openSource(t, "autoincrement", url)); len(all) != 1 || all[0].Problem != "" || all[0].End != 3 || all[0].Filled != 3 {
				t.Errorf("autoincrement: got %+v, want one at 3", all)
			}
		})
	}
}
