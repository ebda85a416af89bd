package sqldb_test

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/leaf-idgen/leaf/driver/sqldb"
	"github.com/leaf-idgen/leaf/internal/test/server"
	"github.com/leaf-idgen/leaf/segment"
)

// galeraSeam is a server that says it is in a Galera group while on is set. It keeps the
// text of each statement that loads a range.
type galeraSeam struct {
	seam
	on atomic.Bool

	mu    sync.Mutex
	loads []string
}

func newGaleraSeam() *galeraSeam {
	g := &galeraSeam{}
	g.trip = func(call string, after bool) {
		if !after && strings.Contains(call, "leaf_alloc") && strings.Contains(call, "FOR UPDATE") {
			g.mu.Lock()
			g.loads = append(g.loads, call)
			g.mu.Unlock()
		}
	}
	g.answer = func(query string, rows driver.Rows) driver.Rows {
		if !strings.Contains(query, "wsrep_on") || !g.on.Load() {
			return rows
		}
		_ = rows.Close()
		return &answer{columns: [][]string{{"Variable_name", "Value"}}, sets: [][][]driver.Value{{{[]byte("wsrep_on"), []byte("ON")}}}}
	}
	return g
}

// packets returns how many loads since the last call were a whole transaction in one
// message, and how many were not.
func (g *galeraSeam) packets() (whole, single int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, load := range g.loads {
		if strings.Contains(load, "COMMIT") {
			whole++
		} else {
			single++
		}
	}
	g.loads = nil
	return whole, single
}

// TestGaleraLoadsByStatements: a member of a Galera group can take a transaction back
// between two statements of one message and tell nobody (TestGroup shows it), so a load
// there is never one message. Where a connection leads into a group only later, the first
// load that meets it is not believed.
func TestGaleraLoadsByStatements(t *testing.T) {
	t.Parallel()
	d := server.MariaDB(t)
	applySchema(t, d.URL())
	db := d.Open(t)
	if !isMariaDB(t, db) {
		t.Skip("make test-matrix gives MySQL in the place of MariaDB, and MySQL has no Galera")
	}
	execAll(t, db, "INSERT INTO leaf_alloc (biz_tag, max_id, step, description) VALUES ('order', 1, 10, '')")
	g := newGaleraSeam()
	s, _ := g.open(t, d.URL())
	load := func(want int64) {
		t.Helper()
		res, err := s.Reserve(t.Context(), segment.Request{Tag: "order", Step: 10, Length: 10, Min: 1, Max: segment.MaxStep})
		if err != nil || res.Range.Lo != want {
			t.Fatalf("Reserve = %+v, %v; want a range from %d", res, err, want)
		}
	}
	load(1)
	if whole, single := g.packets(); whole != 1 || single != 0 {
		t.Errorf("outside of a group: %d loads of one message, %d statements", whole, single)
	}

	g.on.Store(true)
	endConnections(t, db, d.Name())
	load(21) // [11, 21) came in one message from the group
	if whole, single := g.packets(); whole != 1 || single == 0 {
		t.Errorf("the first load from the group: %d loads of one message, %d statements", whole, single)
	}
	for want := int64(31); want < 100; want += 10 {
		load(want)
	}
	if whole, single := g.packets(); whole != 0 || single == 0 {
		t.Errorf("in the group: %d loads of one message, %d statements", whole, single)
	}
}

// endConnections ends all other connections to a database.
func endConnections(t *testing.T, db *sql.DB, name string) {
	t.Helper()
	rows, err := db.QueryContext(t.Context(), "SELECT id FROM information_schema.processlist WHERE db = ? AND id <> CONNECTION_ID()", name)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	var ids []int64
	for rows.Next() {
		var id int64
		if err := rows.Scan(&id); err != nil {
			t.Fatal(err)
		}
		ids = append(ids, id)
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	for _, id := range slices.Backward(ids) {
		_, _ = db.ExecContext(t.Context(), "KILL ?", id) // it may have ended by itself
	}
}

// TestSessionsOfAGroupWait: a member acknowledges a commit before the others show it
// (TestReadsInAGroup), so each session in a group waits before it reads.
func TestSessionsOfAGroupWait(t *testing.T) {
	t.Parallel()
	refused := errors.New("refused")
	for _, tt := range []struct {
		name   string
		says   [][]driver.Value
		err    error // of what the session is told
		galera bool
		want   string // that it is told; "": nothing
	}{
		{name: "a server without these variables"},
		{name: "MariaDB outside of its group", says: [][]driver.Value{{[]byte("wsrep_on"), []byte("OFF")}}},
		{name: "Galera", says: [][]driver.Value{{[]byte("wsrep_on"), []byte("ON")}}, galera: true, want: "SET SESSION wsrep_sync_wait = @@SESSION.wsrep_sync_wait | 1"},
		{name: "Galera refuses", says: [][]driver.Value{{[]byte("wsrep_on"), []byte("ON")}}, galera: true, err: refused, want: "SET SESSION wsrep_sync_wait = @@SESSION.wsrep_sync_wait | 1"},
		{name: "Group Replication", says: [][]driver.Value{{[]byte("group_replication_consistency"), []byte("EVENTUAL")}}, want: "SET SESSION group_replication_consistency = 'BEFORE'"},
		{name: "Group Replication that waits behind a commit", says: [][]driver.Value{{[]byte("group_replication_consistency"), []byte("AFTER")}}, want: "SET SESSION group_replication_consistency = 'BEFORE_AND_AFTER'"},
		{name: "Group Replication that waits for all", says: [][]driver.Value{{[]byte("group_replication_consistency"), []byte("BEFORE_AND_AFTER")}}},
	} {
		c := &toldConn{says: answer{columns: [][]string{{"Variable_name", "Value"}}, sets: [][][]driver.Value{tt.says}}, err: tt.err}
		galera := new(atomic.Bool)
		if err := sqldb.EnterGroup(t.Context(), c, galera); !errors.Is(err, tt.err) || (err == nil) != (tt.err == nil) {
			t.Errorf("%s: %v, want %v", tt.name, err, tt.err)
		}
		if told := strings.Join(c.told, "; "); told != tt.want || galera.Load() != tt.galera {
			t.Errorf("%s: told %q, galera %t; want %q, %t", tt.name, told, galera.Load(), tt.want, tt.galera)
		}
	}
}

// toldConn is a session that answers one question, and keeps what it is told.
type toldConn struct {
	driver.Conn

	says answer
	err  error
	told []string
}

func (c *toldConn) QueryContext(context.Context, string, []driver.NamedValue) (driver.Rows, error) {
	return &c.says, nil
}

func (c *toldConn) ExecContext(_ context.Context, query string, _ []driver.NamedValue) (driver.Result, error) {
	c.told = append(c.told, query)
	return driver.RowsAffected(0), c.err
}
