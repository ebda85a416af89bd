package app_test

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/leaf-idgen/leaf/internal/app"
	"github.com/leaf-idgen/leaf/internal/config"
	"github.com/leaf-idgen/leaf/internal/test/long"
)

// toC is a configuration whose rule sends the tag user to a new database c, in which row is all
// that there is of it.
func toC(t *testing.T, c config.Config, row string) (fresh config.Config, path string) {
	t.Helper()
	path = filepath.Join(shortDir(t), "c.db")
	only := c
	only.DataDir, only.Stores, only.TagRules = shortDir(t), []string{"sqlite:" + path}, nil
	applySchema(t, only)
	db := openFile(t, path)
	execute(t, db, "DELETE FROM leaf_meta WHERE name <> 'cluster_id'") // as the table alone was made
	execute(t, db, "INSERT INTO leaf_alloc (biz_tag, max_id, step, update_time) VALUES "+row)
	fresh = c
	fresh.DataDir, fresh.TagRules = shortDir(t), []string{"user*=c"}
	fresh.Stores = append([]string{"c=sqlite:" + path}, c.Stores...)
	return fresh, path
}

// TestNodeBeforeItsRuleIsRecorded: the rows were copied to a new database, and a node with the new
// rule starts before the command, while the databases that have the old rule do not answer, or none
// has a rule at all. It issues nothing from the copies.
func TestNodeBeforeItsRuleIsRecorded(t *testing.T) {
	t.Parallel()
	c, _, stop, _, _, _ := copied(t)
	stop()
	fresh, _ := toC(t, c, "('user', 1, 5, CURRENT_TIMESTAMP)")
	away := fresh
	away.Stores = slices.Clone(fresh.Stores)
	for i, name := range []string{"a", "b"} {
		away.Stores[i+1] = name + "=mysql://leaf@127.0.0.1:1/" + name
	}
	node, err := app.New(away, app.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := node.Stop(t.Context()); err != nil {
			t.Error(err)
		}
	}()
	err = node.Start(t.Context())
	if err == nil {
		status, id := get(t, node, "/api/segment/get/user")
		t.Errorf("the node has started, and answers %d %s", status, id)
	} else if want := "no tag rule is recorded"; !strings.Contains(err.Error(), want) {
		t.Errorf("Start: %v; want that it says %q", err, want)
	}
}

// TestFirstRuleBesideCopiedRows: leaf schema apply records a rule where none was, because the table
// leaf_meta is new there. It compares the rows as with --accept-rule.
func TestFirstRuleBesideCopiedRows(t *testing.T) {
	long.Plain(t)
	t.Parallel()
	c, _, stop, a, b, _ := copied(t)
	stop()
	execute(t, a, "DROP TABLE leaf_meta")
	execute(t, b, "DROP TABLE leaf_meta")
	fresh, path := toC(t, c, "('user', 1, 5, CURRENT_TIMESTAMP)")
	_, err := app.ApplySchema(t.Context(), fresh, app.Options{}, nil)
	wantConflict(t, err, `set max_id in store "c" to 13 or more`)
	execute(t, openFile(t, path), "UPDATE leaf_alloc SET max_id = 13")
	for range 2 {
		if _, err := app.ApplySchema(t.Context(), fresh, app.Options{}, nil); err != nil {
			t.Fatal(err)
		}
	}
	node, _ := start(t, fresh)
	if status, id := get(t, node, "/api/segment/get/user"); status != 200 || id != "13" {
		t.Errorf("got %d %s, want 13", status, id)
	}
}

// TestRuleOfOneDatabaseIsGone: of several databases that run, one has lost its record, by a dump
// that was loaded. Nodes take no range there, and the command takes it for another database until it
// is told that it is not.
func TestRuleOfOneDatabaseIsGone(t *testing.T) {
	long.Plain(t)
	t.Parallel()
	c, node, stop, _, b, issued := copied(t)
	execute(t, b, "DELETE FROM leaf_meta WHERE name <> 'cluster_id'")
	for served := 0; ; served++ {
		status, id := get(t, node, "/api/segment/get/user")
		if status != 200 {
			break
		}
		if issued[id] || served > 50 { // the ranges that were loaded before are issued
			t.Fatalf("%s, the %dth, was issued from a database without a rule", id, served)
		}
	}
	_, err := app.ApplySchema(t.Context(), c, app.Options{}, nil)
	wantConflict(t, err, "add --accept-rule --lost b")
	stop()
	if _, err := app.ApplySchema(t.Context(), c, app.Options{}, &app.RuleChange{Lost: []string{"b"}}); err != nil {
		t.Fatal(err)
	}
	again, _ := start(t, c)
	if status, _ := get(t, again, "/api/segment/get/user"); status != 200 {
		t.Errorf("got %d after the rule is back", status)
	}
}
