package app_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/internal/app"
	"github.com/leaf-idgen/leaf/internal/config"
	"github.com/leaf-idgen/leaf/internal/manage"
	"github.com/leaf-idgen/leaf/internal/test/long"
	"github.com/leaf-idgen/leaf/segment"
)

// divided is a configuration of the databases a and b, whose files are in dir. The tag user is
// in b until a rule sends it to a.
func divided(t *testing.T) (dir string, c config.Config) {
	t.Helper()
	dir = shortDir(t)
	c = embedded(dir)
	c.Stores = []string{"a=sqlite:" + filepath.Join(dir, "a.db"), "b=sqlite:" + filepath.Join(dir, "b.db")}
	c.TagRules = []string{"order*=a"}
	c.Segment.FixedStep = true
	applySchema(t, c)
	return dir, c
}

// applySchema records the rule of several databases.
func applySchema(t *testing.T, c config.Config) {
	t.Helper()
	if _, err := app.ApplySchema(t.Context(), c, app.Options{}, nil); err != nil {
		t.Fatal(err)
	}
}

// startNamed returns the start that the refusal of a new tag names.
func startNamed(t *testing.T, err error) int64 {
	t.Helper()
	says := regexp.MustCompile(`use --start (\d+) or more`).FindStringSubmatch(fmt.Sprint(err))
	if !errors.Is(err, leaf.ErrConflict) || says == nil {
		t.Fatalf("create: %v; want a conflict that names a start", err)
	}
	start, err := strconv.ParseInt(says[1], 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return start
}

// TestRuleBesideARowThatWasNotMoved: a new rule sends a tag to a database without its row.
// The error of the unknown tag says to create it. On a node that has no fence of its own it
// must not begin below the row in the old database, nor below the end of a row that was
// deleted there.
func TestRuleBesideARowThatWasNotMoved(t *testing.T) {
	long.Plain(t)
	t.Parallel()
	for _, deleted := range []bool{false, true} {
		name := "the row is still there"
		if deleted {
			name = "the row was deleted"
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, c := divided(t)
			old, stop := start(t, c)
			again := segment.NewRow{Tag: "user", Start: 1, Step: 5}
			if _, err := manage.Ask(t.Context(), old.Backend(), manage.CreateTag{NewRow: again}); err != nil {
				t.Fatal(err)
			}
			issued := map[string]bool{}
			for range 12 {
				_, id := get(t, old, "/api/segment/get/user")
				issued[id] = true
			}
			if deleted {
				if err := manage.Tell(t.Context(), old.Backend(), manage.DeleteTag{Name: "user"}); err != nil {
					t.Fatal(err)
				}
			}
			stop()

			fresh := c
			fresh.DataDir, fresh.TagRules = shortDir(t), []string{"user*=a"}
			if _, err := app.ApplySchema(t.Context(), fresh, app.Options{}, &app.RuleChange{}); err != nil {
				t.Fatal(err)
			}
			node, _ := start(t, fresh)
			_, err := manage.Ask(t.Context(), node.Backend(), manage.CreateTag{NewRow: again})
			again.Start = startNamed(t, err)
			if _, err := manage.Ask(t.Context(), node.Backend(), manage.CreateTag{NewRow: again}); err != nil {
				t.Fatal(err)
			}
			for range 12 {
				if status, id := get(t, node, "/api/segment/get/user"); status != 200 || issued[id] {
					t.Fatalf("got %d %s, which was issued before: %v", status, id, issued[id])
				}
			}
		})
	}
}

// copied is divided with a node that issues from tag user in b after its row was copied to a,
// and the IDs that it issued.
func copied(t *testing.T) (c config.Config, node *app.App, stop func(), a, b *sql.DB, issued map[string]bool) {
	t.Helper()
	dir, c := divided(t)
	node, stop = start(t, c)
	if _, err := manage.Ask(t.Context(), node.Backend(), manage.CreateTag{NewRow: segment.NewRow{Tag: "user", Start: 1, Step: 5}}); err != nil {
		t.Fatal(err)
	}
	a, b = openFile(t, filepath.Join(dir, "a.db")), openFile(t, filepath.Join(dir, "b.db"))
	execute(t, a, "INSERT INTO leaf_alloc (biz_tag, max_id, step, update_time) VALUES ('user', 1, 5, CURRENT_TIMESTAMP)")
	issued = map[string]bool{}
	for range 12 {
		_, id := get(t, node, "/api/segment/get/user")
		issued[id] = true
	}
	return c, node, stop, a, b, issued
}

// TestRuleBesideARowThatWasDeletedWithSQL: the row of a tag was copied to another database,
// nodes took ranges after that, and then the old row was deleted with SQL. The nodes have told
// the old database where it ended, or the command runs in the data directory of one that holds
// the numbers.
func TestRuleBesideARowThatWasDeletedWithSQL(t *testing.T) {
	long.Plain(t)
	t.Parallel()
	for name, told := range map[string]bool{"a node told of it": true, "while no node ran": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c, node, stop, a, b, issued := copied(t)
			if told {
				execute(t, b, "DELETE FROM leaf_alloc WHERE biz_tag = 'user'")
				until(t, "the node tells where the row ended", func() (tells bool) {
					if status, id := get(t, node, "/api/segment/get/user"); status == 200 {
						issued[id] = true
					}
					if err := b.QueryRowContext(t.Context(), "SELECT count(*) > 0 FROM leaf_repair_node WHERE biz_tag = 'user' AND high > 0").Scan(&tells); err != nil {
						t.Fatal(err)
					}
					return tells
				})
				stop()
				c.DataDir = shortDir(t)
			} else {
				stop()
				execute(t, b, "DELETE FROM leaf_alloc WHERE biz_tag = 'user'")
			}
			c.TagRules = []string{"user*=a"}
			_, err := app.ApplySchema(t.Context(), c, app.Options{}, &app.RuleChange{})
			var above int64
			_, named, _ := strings.Cut(fmt.Sprint(err), `set max_id in store "a" to `)
			if _, scanErr := fmt.Sscanf(named, "%d or more", &above); !errors.Is(err, leaf.ErrConflict) || scanErr != nil {
				t.Fatalf("the rule beside the copied row: %v; want a conflict that names a max_id", err)
			}
			execute(t, a, "UPDATE leaf_alloc SET max_id = ? WHERE biz_tag = 'user'", above)
			if _, err := app.ApplySchema(t.Context(), c, app.Options{}, &app.RuleChange{}); err != nil {
				t.Fatal(err)
			}
			again, _ := start(t, c)
			for range 12 {
				if status, id := get(t, again, "/api/segment/get/user"); status != 200 || issued[id] {
					t.Fatalf("got %d %s, which was issued before: %v", status, id, issued[id])
				}
			}
		})
	}
}

// TestRuleBesideARowThatCannotBeRead: where its numbers end is not known, in the old database
// and in the new one.
func TestRuleBesideARowThatCannotBeRead(t *testing.T) {
	long.Plain(t)
	t.Parallel()
	for _, store := range []string{"a", "b"} {
		t.Run(store, func(t *testing.T) {
			t.Parallel()
			c, _, stop, a, b, _ := copied(t)
			stop()
			db := map[string]*sql.DB{"a": a, "b": b}[store]
			loosen(t, db)
			execute(t, db, "UPDATE leaf_alloc SET max_id = '13 or so' WHERE biz_tag = 'user'")
			c.TagRules = []string{"user*=a"}
			_, err := app.ApplySchema(t.Context(), c, app.Options{}, &app.RuleChange{})
			if want := fmt.Sprintf(`the row of tag "user" in store %q cannot be read`, store); !errors.Is(err, leaf.ErrConflict) || !strings.Contains(err.Error(), want) {
				t.Errorf("got %v, want a conflict that says %q", err, want)
			}
		})
	}
}

// TestRuleBesideARowThatCannotBeReadAsTheTextSays: the operator corrects such a row as the error says, and knows the IDs of
// one's own tables. No ID repeats.
func TestRuleBesideARowThatCannotBeReadAsTheTextSays(t *testing.T) {
	long.Plain(t)
	t.Parallel()
	c, _, stop, a, b, issued := copied(t)
	stop()
	loosen(t, b)
	execute(t, b, "UPDATE leaf_alloc SET max_id = '13 or so' WHERE biz_tag = 'user'")
	c.TagRules, c.DataDir = []string{"user*=a"}, shortDir(t)
	const highest, largest = 12, 1_000_000 // in the tables; segment.max-step
	for range 3 {
		_, err := app.ApplySchema(t.Context(), c, app.Options{}, &app.RuleChange{})
		if err == nil {
			break
		}
		number := int64(highest)
		if strings.Contains(err.Error(), "plus three times "+segment.LargestRange) {
			number += 3 * largest
		}
		db := b
		if _, above, ok := strings.Cut(err.Error(), `set max_id in store "a" to `); ok {
			db = a
			if _, err := fmt.Sscan(above, &number); err != nil {
				t.Fatal(err)
			}
		}
		execute(t, db, "UPDATE leaf_alloc SET max_id = ? WHERE biz_tag = 'user'", number)
	}
	node, stop := start(t, c)
	defer stop()
	if status, id := get(t, node, "/api/segment/get/user"); status != 200 || issued[id] {
		t.Errorf("%d %s, although the tables have the IDs up to %d", status, id, highest)
	}
}

// TestRuleBesideARunningNode: a node that still runs takes ranges by the old rule, and what it
// holds is not in the database yet.
func TestRuleBesideARunningNode(t *testing.T) {
	t.Parallel()
	c, node, stop, a, _, _ := copied(t)
	execute(t, a, "UPDATE leaf_alloc SET max_id = 1000 WHERE biz_tag = 'user'")
	info, err := manage.Ask(t.Context(), node.Backend(), manage.GetInfo{})
	if err != nil {
		t.Fatal(err)
	}
	fresh := c
	fresh.DataDir, fresh.TagRules = shortDir(t), []string{"user*=a"}
	_, err = app.ApplySchema(t.Context(), fresh, app.Options{}, &app.RuleChange{})
	if !errors.Is(err, leaf.ErrConflict) || !strings.Contains(err.Error(), "nodes take ranges from store") {
		t.Errorf("beside the node of %s: got %v, want a conflict", info.DataDir, err)
	}
	stop()
	if _, err := app.ApplySchema(t.Context(), fresh, app.Options{}, &app.RuleChange{}); err != nil {
		t.Errorf("after the node has stopped: %v", err)
	}
}

// TestRuleBesideANodeThatStarts: a node with the old rule starts after the command has found
// that no node runs, and before the new rule is recorded. The command refuses, and the database
// keeps its old rule. When the node has ended, the command names the max_id that is high enough.
func TestRuleBesideANodeThatStarts(t *testing.T) {
	long.Plain(t)
	t.Parallel()
	for name, ends := range map[string]bool{"it runs on": false, "it ends again": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c, _, stop, a, b, issued := copied(t)
			stop()
			for _, db := range []*sql.DB{a, b} {
				execute(t, db, "UPDATE leaf_alloc SET max_id = 1000 WHERE biz_tag = 'user'")
			}
			writer, err := a.Conn(t.Context()) // keeps the command from its first write
			if err != nil {
				t.Fatal(err)
			}
			defer writer.Close()
			if _, err := writer.ExecContext(t.Context(), "BEGIN IMMEDIATE"); err != nil {
				t.Fatal(err)
			}
			fresh, old := c, c
			fresh.DataDir, fresh.TagRules = shortDir(t), []string{"user*=a"}
			old.DataDir = shortDir(t)
			done := make(chan error, 1)
			go func() {
				_, err := app.ApplySchema(context.Background(), fresh, app.Options{}, &app.RuleChange{})
				done <- err
			}()
			time.Sleep(500 * time.Millisecond) // the command has looked for nodes; if not, it refuses all the same
			node, err := app.New(old, app.Options{})
			if err != nil {
				t.Fatal(err)
			}
			stop = sync.OnceFunc(func() {
				if err := node.Stop(context.Background()); err != nil {
					t.Error(err)
				}
			})
			defer stop()
			go func() { _ = node.Start(context.Background()) }() // database a makes it wait
			for served := 0; served < 12; {
				if status, id := get(t, node, "/api/segment/get/user"); status == 200 {
					issued[id] = true
					served++
				}
			}
			if ends {
				stop()
			}
			if _, err := writer.ExecContext(t.Context(), "ROLLBACK"); err != nil {
				t.Fatal(err)
			}
			if err := <-done; !errors.Is(err, leaf.ErrConflict) {
				t.Fatalf("the command beside a node that starts: %v; want a conflict", err)
			}
			stop()
			var above int64
			_, err = app.ApplySchema(t.Context(), fresh, app.Options{}, &app.RuleChange{})
			_, named, _ := strings.Cut(fmt.Sprint(err), `set max_id in store "a" to `)
			if _, scanErr := fmt.Sscanf(named, "%d or more", &above); scanErr != nil {
				t.Fatalf("after the node has ended: %v; want that it names a max_id", err)
			}
			if _, stop := start(t, old); true { // the old rule is still recorded
				stop()
			}
			execute(t, a, "UPDATE leaf_alloc SET max_id = ? WHERE biz_tag = 'user'", above)
			if _, err := app.ApplySchema(t.Context(), fresh, app.Options{}, &app.RuleChange{}); err != nil {
				t.Fatal(err)
			}
			again, _ := start(t, fresh)
			for range 12 {
				if status, id := get(t, again, "/api/segment/get/user"); status != 200 || issued[id] {
					t.Fatalf("got %d %s, which was issued before: %v", status, id, issued[id])
				}
			}
		})
	}
}
