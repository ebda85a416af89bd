package sqldb_test

import (
	"context"
	"crypto/rand"
	"database/sql/driver"
	"errors"
	"regexp"
	"strings"
	"testing"

	"github.com/leaf-idgen/leaf/internal/test/server"
	"github.com/leaf-idgen/leaf/segment"
)

// splitting is a proxy that sends each SELECT outside of a transaction to a replica that lags.
type splitting struct {
	driver.Connector
	replica string
}

func (c splitting) Connect(ctx context.Context) (driver.Conn, error) {
	conn, err := c.Connector.Connect(ctx)
	if err != nil {
		return nil, err
	}
	return &splitConn{seamConn: &seamConn{Conn: conn, seam: &seam{trip: func(string, bool) {}}}, replica: c.replica}, nil
}

type splitConn struct {
	*seamConn
	replica string
	inside  bool // of a transaction
}

func (c *splitConn) ExecContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Result, error) {
	c.inside = query != "COMMIT" && query != "ROLLBACK" && (c.inside || strings.HasPrefix(query, "START TRANSACTION"))
	return c.seamConn.ExecContext(ctx, query, args)
}

func (c *splitConn) QueryContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Rows, error) {
	if !c.inside && strings.HasPrefix(query, "SELECT") {
		for _, table := range []string{"leaf_alloc", "leaf_repair", "leaf_repair_node"} {
			query = regexp.MustCompile(`FROM `+table+`\b`).ReplaceAllString(query, "FROM "+c.replica+"."+table)
		}
	}
	return c.seamConn.QueryContext(ctx, query, args)
}

// TestUnbindReadsWhereItWaits: the rows of a change are those of the server that has waited for
// the loads, and not what a replica behind a proxy has heard of them.
func TestUnbindReadsWhereItWaits(t *testing.T) {
	t.Parallel()
	d := server.MariaDB(t)
	replica := d.Named(d.Name() + "_replica")
	execAll(t, d.Open(t), "CREATE DATABASE "+replica.Name())
	defer execAll(t, d.Open(t), "DROP DATABASE "+replica.Name())
	applySchema(t, d.URL())
	applySchema(t, replica.URL())
	ruled(t, replica.URL(), replica.Open(t), oldRule)
	ruled(t, d.URL(), d.Open(t), oldRule)
	execAll(t, d.Open(t), "UPDATE leaf_alloc SET max_id = 1001",
		"INSERT INTO leaf_repair (biz_tag, asked, regress, repaired, update_time) VALUES ('order', 0, 5000, 0, CURRENT_TIMESTAMP)")
	s := openThrough(t, d.URL(), func(c driver.Connector) driver.Connector { return splitting{c, replica.Name()} })
	if rows, err := s.Rows(t.Context()); err != nil || len(rows) != 1 || rows[0].MaxID != 1 {
		t.Fatalf("Rows of the replica = %+v, %v; want max_id=1", rows, err)
	}
	change := unbind(t, s)
	if rows := change.Rows(); len(rows) != 1 || rows[0].MaxID != 1001 {
		t.Errorf("Rows of the change = %+v; want max_id=1001", rows)
	}
	if notices, _ := change.Told(); len(notices) != 1 || notices[0].Regress != 5000 {
		t.Errorf("notices of the change: %+v; want a regress at 5000", notices)
	}
}

// TestUnbindThatDoesNotSeeAll: the command runs as a user from whom the server hides what it must
// compare. It takes that neither for nothing nor for a table that is not there.
func TestUnbindThatDoesNotSeeAll(t *testing.T) {
	const rows = "SELECT, INSERT, UPDATE, DELETE ON leaf_alloc TO "
	for _, c := range []struct {
		name     string
		database func(t testing.TB) server.Database
		hide     []string
		text     string
	}{
		{"mysql: what nodes have told", server.MariaDB, []string{"GRANT SELECT, INSERT, UPDATE, DELETE ON leaf_meta TO ", "GRANT " + rows}, "leaf_repair"},
		{"postgres: what nodes have told", server.Postgres, []string{"GRANT SELECT, INSERT, UPDATE, DELETE ON leaf_meta TO ", "GRANT " + rows}, "leaf_repair"},
		{"postgres: rows", server.Postgres, []string{
			"GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA public TO ",
			"ALTER TABLE leaf_alloc ENABLE ROW LEVEL SECURITY", "CREATE POLICY hidden ON leaf_alloc USING (biz_tag <> 'order')",
		}, "row-level security"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			d := c.database(t)
			db := d.Open(t)
			applySchema(t, d.URL())
			ruled(t, d.URL(), db, oldRule)
			user := makeUser(t, db, d)
			for _, statement := range c.hide {
				if strings.HasSuffix(statement, " ") {
					statement += user
				}
				execAll(t, db, statement)
			}
			change, err := open(t, as(t, d, strings.Trim(user, `"'`), "secret")).Unbind(t.Context(), rand.Text(), newRule)
			if !errors.Is(err, segment.ErrDenied) || !strings.Contains(err.Error(), c.text) {
				t.Errorf("Unbind: %v; want ErrDenied with %q", err, c.text)
			}
			if change != nil {
				if err := change.Undo(t.Context()); err != nil {
					t.Error(err)
				}
			}
			if err := open(t, d.URL()).Bind(t.Context(), oldRule); err != nil {
				t.Errorf("Bind by the rule before: %v", err)
			}
		})
	}
}
