package sqldb_test

import (
	"database/sql"
	"errors"
	"testing"
	"time"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/driver/sqldb"
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
		t.Skip("a second transaction does not begin")
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
	until(t, "it waits for the row", func() bool {
		var n int
		time.Sleep(150 * time.Millisecond) // MySQL renews its table only if nobody has read it for 100 ms
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
