package sqldb_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"database/sql"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"unicode/utf8"

	"github.com/leaf-idgen/leaf/driver/drivertest"
	"github.com/leaf-idgen/leaf/internal/test/proxy"
	"github.com/leaf-idgen/leaf/internal/test/server"
	"github.com/leaf-idgen/leaf/segment"
)

// flavour is one row of the tests: a dialect on a table of a certain shape.
type flavour struct {
	name     string
	database func(t testing.TB) server.Database
	once     []string // statements for the database as a whole
	table    []string // statements that make the tables; none: ApplySchema
	put      string   // writes a raw row: tag, max_id, step, seconds since 1970
	lock     string   // locks a row: tag
	same     sameness // how the column biz_tag compares names; zero: by bytes
	holds    func(tag string) bool
	only     []string // groups of the suite: those that look at what this table has and no other one; none: all

	noText, noOptions, noLimits, noMeta bool
}

const (
	mysqlPut    = "REPLACE INTO leaf_alloc (biz_tag, max_id, step, update_time) VALUES (?, ?, ?, FROM_UNIXTIME(?))"
	mysqlLock   = "SELECT 1 FROM leaf_alloc WHERE biz_tag = ? FOR UPDATE"
	postgresPut = "INSERT INTO leaf_alloc (biz_tag, max_id, step, update_time) VALUES ($1, $2, $3, to_timestamp($4))" +
		" ON CONFLICT (biz_tag) DO UPDATE SET max_id = excluded.max_id, step = excluded.step, update_time = excluded.update_time"
	postgresLock = "SELECT 1 FROM leaf_alloc WHERE biz_tag = $1 FOR UPDATE"
)

// sameness is how a column compares names.
type sameness struct{ name, collation string } // in name, $n stands for a numbered parameter

var (
	mysqlPadded = sameness{"CONVERT(? USING utf8mb4)", "utf8mb4_bin"}
	mysqlCI     = sameness{"CONVERT(? USING utf8)", "utf8_general_ci"}
	postgresCI  = sameness{"CAST($n AS text)", "ci"}
)

func (s sameness) parameter(i int) string {
	return strings.ReplaceAll(s.name, "$n", "$"+strconv.Itoa(i))
}

// query asks whether the column takes a name for one of others, in one round trip.
func (s sameness) query(others int) string {
	list := make([]string, others)
	for i := range list {
		list[i] = s.parameter(i + 2)
	}
	return "SELECT " + s.parameter(1) + " COLLATE " + s.collation + " IN (" + strings.Join(list, ", ") + ")"
}

// oldOptions is leaf_tag_option as it was before it had limits, for all dialects.
const oldOptions = "CREATE TABLE leaf_tag_option (biz_tag varchar(128) NOT NULL PRIMARY KEY, min_step int NOT NULL DEFAULT 0," +
	" max_step int NOT NULL DEFAULT 0, fixed_step boolean NOT NULL DEFAULT false, update_time timestamp NOT NULL DEFAULT CURRENT_TIMESTAMP)"

// javaTable is the script of the Java server, with its text column as given.
func javaTable(textColumn string) string {
	return "CREATE TABLE `leaf_alloc` (`biz_tag` varchar(128) NOT NULL DEFAULT '', `max_id` bigint(20) NOT NULL DEFAULT '1'," +
		" `step` int(11) NOT NULL, " + textColumn + "`update_time` timestamp NOT NULL DEFAULT CURRENT_TIMESTAMP ON UPDATE CURRENT_TIMESTAMP," +
		" PRIMARY KEY (`biz_tag`)) ENGINE=InnoDB DEFAULT CHARSET=utf8 COLLATE=utf8_general_ci"
}

// columns are the groups of the suite that look at the other columns of leaf_alloc. What loads, raises and
// returns does not, and reads names by the column biz_tag alone.
var columns = []string{"Reserve", "Read", "Catalog", "Limits"}

// flavours are the tables that the suite runs on. A new dialect is a new row.
var flavours = []flavour{
	{
		name: "mysql", database: server.MariaDB, put: mysqlPut, lock: mysqlLock, same: mysqlPadded,
	},
	{
		name: "mysql itself", database: server.MySQL, put: mysqlPut, lock: mysqlLock, same: mysqlPadded,
	},
	{
		name: "mysql/java", database: server.MariaDB, put: mysqlPut, lock: mysqlLock,
		table: []string{javaTable("`description` varchar(256) DEFAULT NULL, ")},
		same:  mysqlCI, holds: threeBytes, noOptions: true, noMeta: true,
	},
	{
		name: "mysql/desc", database: server.MariaDB, put: mysqlPut, lock: mysqlLock,
		table: []string{javaTable("`desc` varchar(256) DEFAULT NULL, ")}, only: columns,
		same: mysqlCI, holds: threeBytes, noOptions: true, noMeta: true,
	},
	{
		name: "mysql/no text", database: server.MariaDB, put: mysqlPut, lock: mysqlLock,
		table: []string{javaTable("")}, only: columns,
		same: mysqlCI, holds: threeBytes, noText: true, noOptions: true, noMeta: true,
	},
	{
		name: "mysql/options without limits", database: server.MariaDB, put: mysqlPut, lock: mysqlLock,
		table: []string{
			javaTable("`description` varchar(256) DEFAULT NULL, "), oldOptions,
			"ALTER TABLE leaf_tag_option ADD COLUMN format varchar(64) NOT NULL DEFAULT ''", "ALTER TABLE leaf_tag_option ADD COLUMN id_order varchar(16) NOT NULL DEFAULT ''",
			"ALTER TABLE leaf_tag_option ADD COLUMN period varchar(16) NOT NULL DEFAULT ''", "ALTER TABLE leaf_tag_option ADD COLUMN period_zone varchar(64) NOT NULL DEFAULT ''",
		}, only: columns,
		same: mysqlCI, holds: threeBytes, noLimits: true, noMeta: true,
	},
	{
		name: "postgres", database: server.Postgres, put: postgresPut, lock: postgresLock,
	},
	{
		name: "postgres/desc", database: server.Postgres, put: postgresPut, lock: postgresLock,
		table: []string{`CREATE TABLE leaf_alloc (biz_tag varchar(128) PRIMARY KEY, max_id bigint NOT NULL DEFAULT 1, step int NOT NULL,` +
			` "desc" varchar(256), update_time timestamp NOT NULL DEFAULT CURRENT_TIMESTAMP)`},
		only: columns, noOptions: true, noMeta: true,
	},
	{
		name: "postgres/serializable", database: server.Postgres, put: postgresPut, lock: postgresLock,
		once: []string{`DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET default_transaction_isolation = serializable', current_database()); END $$`},
		table: []string{
			`CREATE TABLE leaf_alloc (biz_tag varchar(128) PRIMARY KEY, max_id bigint NOT NULL DEFAULT 1, step int NOT NULL,` +
				` description text, update_time timestamptz NOT NULL DEFAULT CURRENT_TIMESTAMP)`,
		},
		noOptions: true, noMeta: true,
	},
	{
		name: "postgres/case-insensitive", database: server.Postgres, put: postgresPut, lock: postgresLock,
		table: []string{
			`CREATE COLLATION ci (provider = icu, locale = 'und-u-ks-level2', deterministic = false)`,
			`CREATE TABLE leaf_alloc (biz_tag varchar(128) COLLATE ci PRIMARY KEY, max_id bigint NOT NULL DEFAULT 1, step int NOT NULL,` +
				` update_time timestamptz NOT NULL DEFAULT CURRENT_TIMESTAMP)`,
		},
		same: postgresCI, noText: true, noOptions: true, noMeta: true,
	},
}

// named returns one row of flavours.
func named(name string) flavour {
	return flavours[slices.IndexFunc(flavours, func(f flavour) bool { return f.name == name })]
}

// threeBytes is utf8mb3: nothing above U+FFFF.
func threeBytes(tag string) bool {
	return !strings.ContainsFunc(tag, func(r rune) bool { return utf8.RuneLen(r) > 3 })
}

// remove is the statement by which an operator deletes a row.
func (f flavour) remove() string {
	if strings.HasPrefix(f.name, "postgres") {
		return "DELETE FROM leaf_alloc WHERE biz_tag = $1"
	}
	return "DELETE FROM leaf_alloc WHERE biz_tag = ?"
}

// backend makes the flavour's tables in an empty database, to which db has raw
// access.
func (f flavour) backend(t *testing.T, d server.Database, db *sql.DB) drivertest.Backend {
	t.Helper()
	for _, statement := range f.table {
		if _, err := db.ExecContext(t.Context(), statement); err != nil {
			t.Fatal(err)
		}
	}
	s := open(t, d.URL())
	if f.table == nil {
		if _, err := s.ApplySchema(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	backend := drivertest.Backend{
		Store: s,
		Put: func(t *testing.T, row segment.Row) {
			t.Helper()
			if _, err := db.ExecContext(t.Context(), f.put, row.Tag, row.MaxID, row.Step, row.UpdateTime.Unix()); err != nil {
				t.Fatal(err)
			}
		},
		Lock: func(t *testing.T, tag string) func() {
			t.Helper()
			tx, err := db.BeginTx(context.WithoutCancel(t.Context()), nil)
			if err != nil {
				t.Fatal(err)
			}
			var one int
			if err := tx.QueryRowContext(t.Context(), f.lock, tag).Scan(&one); err != nil {
				t.Fatal(err)
			}
			return rollback(t, tx)
		},
		Remove: func(t *testing.T, tag string) {
			t.Helper()
			if _, err := db.ExecContext(t.Context(), f.remove(), tag); err != nil {
				t.Fatal(err)
			}
		},
		Other:  func(t *testing.T) drivertest.Store { return open(t, d.URL()) },
		Holds:  f.holds,
		NoText: f.noText, NoOptions: f.noOptions, NoLimits: f.noLimits, NoMeta: f.noMeta,
	}
	if !f.noMeta {
		backend.Record = recordRule(s)
	}
	if f.same != (sameness{}) {
		backend.Same = func(name string, others ...string) (same bool) {
			if len(others) == 0 {
				return false
			}
			arguments := []any{name}
			for _, other := range others {
				arguments = append(arguments, other)
			}
			if err := db.QueryRowContext(t.Context(), f.same.query(len(others)), arguments...).Scan(&same); err != nil {
				t.Fatal(err)
			}
			return same
		}
	}
	return backend
}

func TestServers(t *testing.T) {
	t.Parallel()
	for _, f := range flavours {
		t.Run(f.name, func(t *testing.T) {
			t.Parallel()
			whole := f.database(t)
			execAll(t, whole.Open(t), f.once...)
			drivertest.Run(t, func(t *testing.T) drivertest.Backend {
				d := f.empty(t, whole)
				return f.backend(t, d, d.Open(t))
			}, f.only...)
		})
	}
}

// empty returns an empty database for one case. For PostgreSQL, where making a
// database takes long, it is a schema of whole.
func (f flavour) empty(t *testing.T, whole server.Database) server.Database {
	t.Helper()
	if !strings.HasPrefix(f.name, "postgres") {
		return f.database(t)
	}
	schema := "case_" + strings.ToLower(rand.Text())
	execAll(t, whole.Open(t), "CREATE SCHEMA "+schema)
	u, err := url.Parse(whole.URL())
	if err != nil {
		t.Fatal(err)
	}
	query := u.Query()
	query.Set("search_path", schema)
	u.RawQuery = query.Encode()
	d, err := server.ParseDatabase(u.String())
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// wire implements drivertest.Wire on a proxy.
type wire struct{ *proxy.Proxy }

func startWire(t testing.TB, d server.Database) wire {
	t.Helper()
	p, err := proxy.Start(d.Addr())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	return wire{p}
}

func (w wire) CutIdle() { w.Proxy.Cut() }
func (w wire) Freeze()  { w.Swallow(proxy.Client, proxy.Server) }

func (w wire) Heal() {
	w.Swallow()
	w.SetHook(nil)
}

func (w wire) Cut(text string) func() int       { return w.hook(text, proxy.CutReply) }
func (w wire) CutBefore(text string) func() int { return w.hook(text, proxy.CutNow) }

// hook does something to the first piece with text, and counts all of them.
func (w wire) hook(text string, action proxy.Action) (sent func() int) {
	var mu sync.Mutex
	count := 0
	w.SetHook(func(from proxy.Side, data []byte) proxy.Action {
		if from != proxy.Client || !bytes.Contains(data, []byte(text)) {
			return proxy.Pass
		}
		mu.Lock()
		defer mu.Unlock()
		if count++; count > 1 {
			return proxy.Pass
		}
		return action
	})
	return func() int {
		mu.Lock()
		defer mu.Unlock()
		return count
	}
}

func (f flavour) faulty(t *testing.T) (drivertest.Faulty, *sql.DB) {
	d := f.database(t)
	db := d.Open(t)
	w := startWire(t, d)
	faulty := drivertest.Faulty{Backend: f.backend(t, d, db), Wire: w}
	faulty.Store = open(t, d.Via(w.Addr()).URL())
	return faulty, db
}

func TestFaultsMariaDB(t *testing.T) { mysqlFaults(t, named("mysql")) }

func mysqlFaults(t *testing.T, on flavour) {
	drivertest.RunFaults(t, func(t *testing.T) drivertest.Faulty {
		f, db := on.faulty(t)
		f.Alone = "max_id + "
		f.Begin, f.Write, f.Commit = "START TRANSACTION", " AND max_id = ", "COMMIT"
		f.AlwaysAlone = true
		f.RefuseCommits = func(t *testing.T) func() {
			t.Helper()
			execAll(t, db, "CREATE TRIGGER refuse BEFORE UPDATE ON leaf_alloc FOR EACH ROW SIGNAL SQLSTATE '45000'")
			return func() { execAll(t, db, "DROP TRIGGER refuse") }
		}
		return f
	})
}

func TestFaultsPostgres(t *testing.T) {
	drivertest.RunFaults(t, func(t *testing.T) drivertest.Faulty {
		f, db := named("postgres").faulty(t)
		f.Alone = "RETURNING"
		f.Begin, f.Write, f.Commit = "BEGIN", " AND max_id = $4", "COMMIT\x00" // not COMMITTED
		f.AlwaysAlone = true
		f.RefuseCommits = refuseCommits(db)
		return f
	})
}

// refuseCommits uses a deferred constraint trigger: the statement succeeds and
// its row is sent, and then the commit fails.
func refuseCommits(db *sql.DB) func(t *testing.T) func() {
	return func(t *testing.T) func() {
		t.Helper()
		execAll(t, db,
			`CREATE OR REPLACE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'refused'; END $$`,
			`CREATE CONSTRAINT TRIGGER refuse AFTER UPDATE ON leaf_alloc DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION refuse()`)
		return func() {
			t.Helper()
			execAll(t, db, `DROP TRIGGER refuse ON leaf_alloc`)
		}
	}
}

func execAll(t testing.TB, db *sql.DB, statements ...string) {
	t.Helper()
	for _, statement := range statements {
		if _, err := db.ExecContext(t.Context(), statement); err != nil {
			t.Fatalf("%s: %v", statement, err)
		}
	}
}
