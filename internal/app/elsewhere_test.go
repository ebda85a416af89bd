package app_test

import (
	"database/sql"
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"strings"
	"testing"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/internal/app"
	"github.com/leaf-idgen/leaf/internal/manage"
	"github.com/leaf-idgen/leaf/segment"
)

// TestRegressElsewhere: a database lost commits, and its nodes posted that. The operator
// ignores the alarm and sends the tag to another database instead. The row there must not begin
// below what was posted, whether it is created or was moved: the old row says too little.
func TestRegressElsewhere(t *testing.T) {
	t.Parallel()
	for name, moved := range map[string]bool{"row created": false, "row moved": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir, c := divided(t)
			a, b := openFile(t, filepath.Join(dir, "a.db")), openFile(t, filepath.Join(dir, "b.db"))
			old, stop := start(t, c)
			again := segment.NewRow{Tag: "user", Start: 1, Step: 5}
			if _, err := manage.Ask(t.Context(), old.Backend(), manage.CreateTag{NewRow: again}); err != nil {
				t.Fatal(err)
			}
			issued := map[string]bool{}
			take := func(count int) {
				for range count {
					if status, id := get(t, old, "/api/segment/get/user"); status == 200 {
						issued[id] = true
					}
				}
			}
			take(30)
			execute(t, b, "UPDATE leaf_alloc SET max_id = 6 WHERE biz_tag = 'user'") // a failover to a replica that lags
			take(40)
			until(t, "the regress is posted", func() (posted bool) {
				if err := b.QueryRowContext(t.Context(), "SELECT count(*) > 0 FROM leaf_repair WHERE regress > 0").Scan(&posted); err != nil {
					t.Fatal(err)
				}
				return posted
			})
			tag, err := manage.Ask(t.Context(), old.Backend(), manage.GetTag{Name: "user"})
			if err != nil {
				t.Fatal(err)
			}
			stop()

			c.DataDir, c.TagRules = shortDir(t), []string{"user*=a"}
			if moved {
				execute(t, a, "INSERT INTO leaf_alloc (biz_tag, max_id, step, update_time) VALUES ('user', ?, 5, CURRENT_TIMESTAMP)", tag.MaxID)
				var above int64
				_, err := app.ApplySchema(t.Context(), c, app.Options{}, &app.RuleChange{})
				_, named, _ := strings.Cut(fmt.Sprint(err), `set max_id in store "a" to `)
				if _, scanErr := fmt.Sscanf(named, "%d or more", &above); !errors.Is(err, leaf.ErrConflict) || scanErr != nil {
					t.Fatalf("the rule beside the moved row: %v; want a conflict that names a max_id", err)
				}
				execute(t, a, "UPDATE leaf_alloc SET max_id = ? WHERE biz_tag = 'user'", above)
			}
			if _, err := app.ApplySchema(t.Context(), c, app.Options{}, &app.RuleChange{}); err != nil {
				t.Fatal(err)
			}
			node, _ := start(t, c)
			for tries := 0; !moved && tries < 3; tries++ { // does what each refusal says
				_, err := manage.Ask(t.Context(), node.Backend(), manage.CreateTag{NewRow: again})
				if err == nil {
					break
				}
				again.Start = startNamed(t, err)
			}
			for range 12 {
				if status, id := get(t, node, "/api/segment/get/user"); status != 200 || issued[id] {
					t.Fatalf("got %d %s, which was issued before: %v", status, id, issued[id])
				}
			}
		})
	}
}

// TestNoticeElsewhereThatNoNodeWrote: a number that no node can have written is named, and not
// given as the number to begin at.
func TestNoticeElsewhereThatNoNodeWrote(t *testing.T) {
	t.Parallel()
	dir, c := divided(t)
	_, stop := start(t, c)
	stop()
	execute(t, openFile(t, filepath.Join(dir, "b.db")), "INSERT INTO leaf_repair (biz_tag, asked, regress, repaired, update_time) VALUES ('user', 0, ?, 0, CURRENT_TIMESTAMP)", int64(math.MaxInt64))
	execute(t, openFile(t, filepath.Join(dir, "a.db")), "INSERT INTO leaf_alloc (biz_tag, max_id, step, update_time) VALUES ('user', 10, 5, CURRENT_TIMESTAMP)")
	c.TagRules = []string{"user*=a"}
	_, err := app.ApplySchema(t.Context(), c, app.Options{}, &app.RuleChange{})
	if !errors.Is(err, leaf.ErrConflict) || !strings.Contains(err.Error(), "no node wrote that: correct it") {
		t.Errorf("got %v", err)
	}
}

// TestUnreadableRowIsListed: a row with something that is no number is not listed as well.
func TestUnreadableRowIsListed(t *testing.T) {
	t.Parallel()
	dir, c := divided(t)
	node, _ := start(t, c)
	b := openFile(t, filepath.Join(dir, "b.db"))
	loosen(t, b)
	execute(t, b, "INSERT INTO leaf_alloc (biz_tag, max_id, step, update_time) VALUES ('user', 5001, 'abc', CURRENT_TIMESTAMP)")
	tags, err := manage.Ask(t.Context(), node.Backend(), manage.ListTags{})
	if err != nil || len(tags) != 1 || tags[0].Name != "user" || tags[0].State != manage.TagUnreadable {
		t.Errorf("got %+v, %v", tags, err)
	}
}

func openFile(t *testing.T, path string) *sql.DB {
	t.Helper()
	db, err := sql.Open("sqlite", "file:"+path+"?_pragma=busy_timeout(10000)")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	return db
}

// loosen makes leaf_alloc a table that takes a text for a number, as a table does that Leaf has
// not made.
func loosen(t *testing.T, db *sql.DB) {
	t.Helper()
	execute(t, db, "CREATE TABLE loose (biz_tag TEXT NOT NULL PRIMARY KEY, max_id INTEGER NOT NULL, step INTEGER NOT NULL, description TEXT, update_time TEXT)")
	execute(t, db, "INSERT INTO loose SELECT biz_tag, max_id, step, description, update_time FROM leaf_alloc")
	execute(t, db, "DROP TABLE leaf_alloc")
	execute(t, db, "ALTER TABLE loose RENAME TO leaf_alloc")
}

// execute runs a statement as an operator does.
func execute(t *testing.T, db *sql.DB, statement string, args ...any) {
	t.Helper()
	if _, err := db.ExecContext(t.Context(), statement, args...); err != nil {
		t.Fatal(err)
	}
}
