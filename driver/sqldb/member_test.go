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

// TestMemberThatIsCutOff: a member that lost its group keeps its connections, and answers each reading with an error. Behind
// an address of several members a new connection leads to one that serves.
func TestMemberThatIsCutOff(t *testing.T) {
	for name, refused := range map[string]*mysql.MySQLError{
		"Galera":            {Number: 1047, Message: "WSREP has not yet prepared node for application use"},
		"Group Replication": {Number: 3796, Message: "The option group_replication_consistency cannot be used on the current member state."},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := server.MariaDB(t)
			applySchema(t, d.URL())
			var cutOff atomic.Bool
			m := &seam{trip: func(string, bool) {}}
			m.answer = func(query string, rows driver.Rows) driver.Rows {
				if !cutOff.Load() || !strings.HasPrefix(query, "SELECT") {
					return rows
				}
				_ = rows.Close()
				return &answer{columns: [][]string{{"a"}}, sets: [][][]driver.Value{nil}, end: refused}
			}
			s, _ := m.open(t, d.URL())
			for _, off := range []bool{false, true} {
				cutOff.Store(off)
				if _, err := s.Rows(t.Context()); (err != nil) != off {
					t.Fatalf("Rows: %v", err)
				}
			}
			cutOff.Store(false)
			before := m.connections.Load()
			m.oldest.Store(math.MaxInt64)
			if _, err := s.Rows(t.Context()); err != nil {
				t.Fatal(err)
			}
			if oldest := m.oldest.Load(); oldest <= before {
				t.Errorf("connection %d of %d to the member that is cut off is used again", oldest, before)
			}
		})
	}
}
