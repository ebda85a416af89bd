package sqldb_test

import (
	"database/sql"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/driver/sqldb"
	"github.com/leaf-idgen/leaf/internal/test/server"
	"github.com/leaf-idgen/leaf/segment"
)

// besideAnother calls f while another transaction has carried out statements on the row "order", and
// returns what f returns: it waits for the row, and the other transaction is committed then.
func besideAnother(t *testing.T, s *sqldb.Store, db *sql.DB, f func() error, statements ...string) error {
	t.Helper()
	waits := map[string]string{
		"mysql":    "SELECT COUNT(*) FROM information_schema.INNODB_TRX t JOIN information_schema.PROCESSLIST p ON p.ID = t.trx_mysql_thread_id WHERE t.trx_state = 'LOCK WAIT' AND p.DB = DATABASE()",
		"postgres": "SELECT COUNT(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'",
	}[s.Dialect()]
	if waits == "" {
		t.Skip("this database has one transaction that writes at a time, so none waits for a row")
	}
	tx, err := db.BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, statement := range statements {
		if _, err := tx.ExecContext(t.Context(), statement); err != nil {
			t.Fatal(err)
		}
	}
	ended := make(chan error, 1)
	go func() { ended <- f() }()
	waitFor(t, "it waits for the row", func() bool {
		var n int
		time.Sleep(150 * time.Millisecond) // MySQL shows old content until the table was not read for 100 ms
		err := db.QueryRowContext(t.Context(), waits).Scan(&n)
		return err == nil && n > 0
	})
	if err := tx.Commit(); err != nil {
		t.Fatal(err)
	}
	return <-ended
}

// TestCreateWaitsForADelete: a tag is deleted and created by two administrators at once. The second
// one waits for the row, and then finds where it ended, although that was not written yet when its
// transaction began.
func TestCreateWaitsForADelete(t *testing.T) {
	eachBase(t, func(t *testing.T, url string, db *sql.DB) {
		s, _ := changing(t, url, db)
		err := besideAnother(t, s, db, func() error {
			return s.Create(t.Context(), segment.NewRow{Tag: "order", Start: 1, Step: 1000})
		}, "INSERT INTO leaf_repair_node (biz_tag, node, asked, high, latched, seen) VALUES ('order', '"+segment.DeletedRow+"', 0, 2001, false, 1)",
			"DELETE FROM leaf_alloc WHERE biz_tag = 'order'")
		if !errors.Is(err, leaf.ErrConflict) {
			t.Errorf("Create at 1 of a tag whose row ended at 2001: %v; want ErrConflict", err)
		}
	})
}

// TestChangesOfOneTagAtOnce: two administrators change two options of one tag. Both count.
func TestChangesOfOneTagAtOnce(t *testing.T) {
	eachBase(t, func(t *testing.T, url string, db *sql.DB) {
		s, _ := changing(t, url, db)
		err := besideAnother(t, s, db, func() error {
			return s.Update(t.Context(), "order", segment.Change{MaxStep: new(int64(100))})
		}, "UPDATE leaf_alloc SET step = 7 WHERE biz_tag = 'order'",
			"INSERT INTO leaf_tag_option (biz_tag, min_step) VALUES ('order', 5)")
		row, lookErr := s.Lookup(t.Context(), "order")
		if want := (segment.Options{MinStep: 5, MaxStep: 100}); errors.Join(err, lookErr) != nil || row.Options != want || row.Step != 7 {
			t.Errorf("%+v, %v; want step 7 and %+v", row, errors.Join(err, lookErr), want)
		}
	})
}

// TestCreateWhereTheBoardIsHidden: to a user with rights on single tables, MySQL gives one answer for a
// table that is missing and for one that the user may not read. The user creates no tag below the
// numbers in such a table.
func TestCreateWhereTheBoardIsHidden(t *testing.T) {
	t.Parallel()
	d := server.MariaDB(t)
	admin := d.Open(t)
	applySchema(t, d.URL())
	execAll(t, admin, "INSERT INTO leaf_repair_node (biz_tag, node, asked, high, latched, seen) VALUES ('order', '"+segment.DeletedRow+"', 0, 2001, false, 1)")
	user := makeUser(t, admin, d)
	grant := func(tables ...string) {
		for _, table := range tables {
			execAll(t, admin, "GRANT SELECT, INSERT, UPDATE, DELETE ON "+d.Name()+"."+table+" TO "+user)
		}
	}
	grant("leaf_alloc", "leaf_meta", "leaf_tag_option")
	s := open(t, as(t, d, strings.Trim(user, "'"), "secret"))
	create := func(start int64) error {
		return s.Create(t.Context(), segment.NewRow{Tag: "order", Start: start, Step: 1000})
	}
	for name, err := range map[string]error{"Create": create(1), "Answers": func() error { _, err := s.Answers(t.Context(), "order"); return err }()} {
		if !errors.Is(err, segment.ErrDenied) || !errors.Is(err, segment.ErrSchema) || !strings.Contains(err.Error(), "lacks the rights SELECT, INSERT, UPDATE, DELETE") {
			t.Errorf("%s: %v; want that the user lacks rights, or the tables are missing", name, err)
		}
	}
	grant("leaf_repair", "leaf_repair_node")
	s = open(t, as(t, d, strings.Trim(user, "'"), "secret")) // the rights of a table are those of a session
	if err := create(1); !errors.Is(err, leaf.ErrConflict) {
		t.Errorf("with the rights: %v; want ErrConflict", err)
	}
	if err := create(2001); err != nil {
		t.Errorf("above what is known: %v", err)
	}
}

// TestCreateWhereTheBoardIsLost: a dump without the tables of the board was loaded into a new database, or they were dropped. No
// tag is created until they are there, because one that was deleted would begin below its numbers.
func TestCreateWhereTheBoardIsLost(t *testing.T) {
	eachBase(t, func(t *testing.T, url string, db *sql.DB) {
		s := open(t, url)
		execAll(t, db, "DROP TABLE leaf_repair_node")
		create := func() error { return s.Create(t.Context(), segment.NewRow{Tag: "order", Start: 1, Step: 1000}) }
		err := create()
		if !errors.Is(err, segment.ErrSchema) || !strings.Contains(err.Error(), "run: leaf schema apply") || !strings.Contains(err.Error(), "--start NUMBER, with the options") {
			t.Errorf("Create: %v; want ErrSchema with what to type", err)
		}
		if _, err := s.Lookup(t.Context(), "order"); !errors.Is(err, leaf.ErrUnknownTag) {
			t.Errorf("Lookup of the tag that was refused: %v; want ErrUnknownTag", err)
		}
		made, err := s.ApplySchema(t.Context())
		if text := strings.Join(made, "\n"); err != nil || strings.Count(text, "where the numbers of deleted tags end: wait for a minute") != 1 {
			t.Errorf("ApplySchema: %v, %s; want that numbers are lost", err, text)
		}
		if err := create(); err != nil {
			t.Errorf("Create with a new board: %v", err)
		}
	})
}
