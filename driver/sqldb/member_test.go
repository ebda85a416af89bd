package sqldb_test

import (
	"database/sql/driver"
	"math"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/go-sql-driver/mysql"

	"github.com/leaf-idgen/leaf/internal/test/server"
)

// TestMemberThatIsCutOff: a member of a Galera group that lost the others keeps its connections, and answers each
// reading with error 1047. Behind an address of several members a new connection leads to one that serves.
func TestMemberThatIsCutOff(t *testing.T) {
	t.Parallel()
	d := server.MariaDB(t)
	applySchema(t, d.URL())
	execAll(t, d.Open(t), "INSERT INTO leaf_alloc (biz_tag, max_id, step, description) VALUES ('a', 1, 7, '')")
	g := newGaleraSeam()
	g.on.Store(true)
	var cutOff atomic.Bool
	inGroup := g.answer
	g.answer = func(query string, rows driver.Rows) driver.Rows {
		if !cutOff.Load() || !strings.HasPrefix(query, "SELECT") {
			return inGroup(query, rows)
		}
		_ = rows.Close()
		refused := &mysql.MySQLError{Number: 1047, Message: "WSREP has not yet prepared node for application use"}
		return &answer{columns: [][]string{{"a"}}, sets: [][][]driver.Value{nil}, end: refused}
	}
	s, _ := g.open(t, d.URL())
	if _, err := s.Rows(t.Context()); err != nil {
		t.Fatal(err)
	}
	cutOff.Store(true)
	if res, err := s.Reserve(t.Context(), request(7)); err == nil {
		t.Fatalf("Reserve = %v", res)
	}
	cutOff.Store(false)
	before := g.connections.Load()
	g.oldest.Store(math.MaxInt64)
	if _, err := s.Reserve(t.Context(), request(7)); err != nil {
		t.Fatal(err)
	}
	if oldest := g.oldest.Load(); oldest <= before {
		t.Errorf("connection %d of %d to the member that is cut off is used again", oldest, before)
	}
}
