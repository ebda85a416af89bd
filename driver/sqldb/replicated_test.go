package sqldb_test

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/discovery"
	"github.com/leaf-idgen/leaf/driver/sqldb"
	"github.com/leaf-idgen/leaf/internal/audit"
	"github.com/leaf-idgen/leaf/internal/auth"
	"github.com/leaf-idgen/leaf/internal/limit"
	"github.com/leaf-idgen/leaf/internal/test/server"
	"github.com/leaf-idgen/leaf/segment"
	"github.com/leaf-idgen/leaf/worker"
)

// TestReplicatedByStatement: a replica that carries out our statements again, in a
// session with other settings, ends with the same rows.
func TestReplicatedByStatement(t *testing.T) {
	t.Parallel()
	p := server.OwnMariaDBAwkwardPair(t, server.PairOptions{})
	url := p.Database(0).URL()
	applySchema(t, url)
	s := open(t, url)
	writeEverything(t, s, openRecords(t, url), openDirectory(t, url))
	if err := p.Wait(t.Context()); err != nil {
		t.Fatal(err)
	}
	primary, replica := utc(t, p.Database(0)), utc(t, p.Database(1))
	for _, table := range tables {
		want := dump(t, primary, table)
		if len(want) == 0 {
			t.Errorf("nothing was written to %s, so that it proves nothing", table)
		}
		var got []string
		for deadline := time.Now().Add(20 * time.Second); time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) {
			if got = dump(t, replica, table); slices.Equal(got, want) {
				break
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s on the replica:\n%s\nwant\n%s", table, strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
	}
}

// writeEverything calls whatever writes, on names that a session can misread.
func writeEverything(t *testing.T, s *sqldb.Store, claims *sqldb.Records, nodes *sqldb.Directory) {
	t.Helper()
	ctx := t.Context()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	rule := segment.Binding{Store: "default", Rule: `hash "x\' 我`}
	must(recordRule(s)(t, rule))
	must(s.Bind(ctx, rule))
	for _, tag := range []string{"a", `it's \ "我"`, "A", "gone"} {
		must(s.Create(ctx, segment.NewRow{Tag: tag, Start: 1, Step: 7, Description: tag, Options: segment.Options{MaxStep: 100}}))
		for _, step := range []int64{7, 7, 0, 7, 9} { // by one message, and by a transaction
			req := request(step)
			req.Tag = tag
			_, err := s.Reserve(ctx, req)
			must(err)
		}
		res, err := s.Reserve(ctx, segment.Request{Tag: tag, Step: 7, Length: 100, Min: 1, Max: segment.MaxStep})
		must(err)
		must(s.ReturnUnused(ctx, tag, res.Range.Hi, res.Range.Lo+1))
		step := int64(9)
		must(s.Update(ctx, tag, segment.Change{Step: &step}))
		must(second(s.SetTagLimit(ctx, tag, limit.ChangeTo(limit.Rule{Rate: 10}))))
		_, err = s.Raise(ctx, tag, 5000)
		must(err)
	}
	must(s.Delete(ctx, "gone"))
	must(s.Enter(ctx, segment.Member{Node: "node 1"}))
	must(s.Post(ctx, segment.Notice{Tag: `it's \ "我"`, Asked: 1, Regress: 7, Repaired: 9}))
	must(s.Answer(ctx, segment.Answer{Tag: `it's \ "我"`, Node: "node 1", Asked: 1, High: 8, Latched: true}))
	must(second(s.SetClientLimit(ctx, "client", limit.ChangeTo(limit.Rule{Quota: 10, Blocked: true}))))
	must(second(s.SetClientLimit(ctx, "client", limit.ChangeTo(limit.Rule{Quota: 11}))))
	must(s.Record(ctx, audit.Entry{ID: audit.NewID(time.Now()), Node: "node 1", Object: `it's \ "我"`, Result: audit.Done}, time.Hour))
	roles, err := auth.ParseRoles([]string{`issue:it's*`, "read"})
	must(err)
	for _, name := range []string{"shop", "gone"} {
		must(s.CreateToken(ctx, auth.Token{Name: name, Digest: auth.DigestOf("secret of " + name), Roles: roles, Created: time.Now()}))
	}
	must(s.RevokeToken(ctx, "gone"))

	slots, err := s.Slots()
	must(err)
	defer slots.Close()
	for _, records := range []worker.Records{claims, slots} {
		_, err = records.Namespace(ctx, &worker.StoredNamespace{Namespace: worker.Namespace{Name: "leaf", Fingerprint: "x"}, IssueFrom: 1})
		must(err)
		r := put(t, records, first())
		r.Bound += 1000
		put(t, records, r)
	}
	for range 2 {
		must(claims.Announce(ctx, worker.Peer{Nonce: "mine", Address: "10.0.0.1:8080", Clock: "10.0.0.1:8080", Number: 5}))
		must(nodes.Put(ctx, discovery.Node{ID: "n1", HTTP: "10.0.0.1:8080"}, time.Hour))
	}
}

// utc is a connection that reads every time as UTC.
func utc(t *testing.T, d server.Database) *sql.DB {
	t.Helper()
	db := d.Open(t)
	db.SetMaxOpenConns(1)
	execAll(t, db, "SET SESSION time_zone = '+00:00', autocommit = 1, NAMES utf8mb4")
	return db
}

func dump(t *testing.T, db *sql.DB, table string) []string {
	t.Helper()
	return dumpQuery(t, db, "SELECT * FROM "+table)
}

func dumpQuery(t *testing.T, db *sql.DB, query string) (all []string) {
	t.Helper()
	rows, err := db.QueryContext(t.Context(), query)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	columns, err := rows.Columns()
	if err != nil {
		t.Fatal(err)
	}
	for rows.Next() {
		values := make([]sql.NullString, len(columns))
		dest := make([]any, len(columns))
		for i := range values {
			dest[i] = &values[i]
		}
		if err := rows.Scan(dest...); err != nil {
			t.Fatal(err)
		}
		texts := make([]string, len(values))
		for i, v := range values {
			texts[i] = fmt.Sprintf("%q", v.String)
		}
		all = append(all, strings.Join(texts, " "))
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	slices.Sort(all)
	return all
}

// forgetful replaces what the store sets at the start of a session by the opposite, as a
// proxy may whose other clients share the session.
type forgetful struct{ driver.Connector }

func (f forgetful) Connect(ctx context.Context) (driver.Conn, error) {
	conn, err := f.Connector.Connect(ctx)
	if err != nil {
		return nil, err
	}
	return forgetfulConn{&seamConn{Conn: conn, seam: &seam{trip: func(string, bool) {}}}}, nil
}

type forgetfulConn struct{ *seamConn }

func (c forgetfulConn) ExecContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Result, error) {
	if strings.HasPrefix(query, "SET NAMES") {
		query = "SET NAMES utf8mb4, @@session.autocommit = 0, @@session.completion_type = 1, @@session.sql_mode = ''"
	}
	return c.seamConn.ExecContext(ctx, query, args)
}

// openForgetful opens a store whose sessions are not as it has set them.
func openForgetful(t *testing.T, url string) *sqldb.Store {
	t.Helper()
	return openThrough(t, url, func(c driver.Connector) driver.Connector { return forgetful{c} })
}

// TestSessionOfAnother: whether the session commits by itself decides nothing. Every
// range is committed before it is returned, and nothing stays locked.
func TestSessionOfAnother(t *testing.T) {
	t.Parallel()
	d := server.MariaDB(t)
	applySchema(t, d.URL())
	sound := open(t, d.URL())
	if err := sound.Create(t.Context(), segment.NewRow{Tag: "a", Start: 1, Step: 7}); err != nil {
		t.Fatal(err)
	}
	l := &life{t: t, db: d.Open(t), other: sound, store: openForgetful(t, d.URL())}
	for range 3 {
		for _, step := range []int64{7, 0, 9} {
			before := l.served
			l.reserve(t.Context(), step)
			if l.served == before {
				t.Errorf("step %d: no range", step)
			}
			l.sound(t.Context())
		}
		res, err := l.store.Reserve(t.Context(), request(7))
		if err != nil {
			t.Fatal(err)
		}
		if err := l.store.ReturnUnused(t.Context(), "a", res.Range.Hi, res.Range.Lo); err != nil {
			t.Error(err)
		}
		l.sound(t.Context())
		maxID, err := l.store.Raise(t.Context(), "a", l.served.Hi+100)
		if err != nil {
			t.Fatal(err)
		}
		l.took("a repair", leaf.Range{Lo: l.served.Hi, Hi: maxID})
		l.sound(t.Context())
	}
}

// TestClippedRange: where the session lets the server cut a number down to what its
// column holds, no range is counted back from it.
func TestClippedRange(t *testing.T) {
	t.Parallel()
	d := server.MariaDB(t)
	execAll(t, d.Open(t), "CREATE TABLE leaf_alloc (biz_tag varchar(128) PRIMARY KEY, max_id int, step int, update_time timestamp)",
		"INSERT INTO leaf_alloc (biz_tag, max_id, step) VALUES ('a', 2147483638, 7)")
	s := openForgetful(t, d.URL())
	res, err := s.Reserve(t.Context(), request(7))
	if want := (leaf.Range{Lo: 2147483638, Hi: 2147483645}); err != nil || res.Range != want {
		t.Fatalf("Reserve = %v, %v; want %v", res, err, want)
	}
	for _, step := range []int64{7, 0} {
		if res, err := s.Reserve(t.Context(), request(step)); err == nil {
			t.Errorf("Reserve past the end of the column = %v", res)
		}
	}
}
