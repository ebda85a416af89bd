package app_test

import (
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"math"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/driver/datadir"
	"github.com/leaf-idgen/leaf/driver/sqldb"
	"github.com/leaf-idgen/leaf/internal/app"
	"github.com/leaf-idgen/leaf/internal/manage"
	"github.com/leaf-idgen/leaf/internal/test/server"
	"github.com/leaf-idgen/leaf/segment"
)

// TestRebuiltFenceIsAboveTheLastRepair: after a repair a dump of leaf_alloc alone was put
// back, and the fence files of the node are gone. When the row has moved up again, the notice
// of that repair does not release the tag: the node does not know what it issued since.
func TestRebuiltFenceIsAboveTheLastRepair(t *testing.T) {
	t.Parallel()
	const tag = "leaf-segment-test"
	dir := filepath.Join(shortDir(t), "d")
	cfg := embedded(dir)
	a, stop := start(t, cfg)
	repair, err := manage.Ask(t.Context(), a.Backend(), manage.RepairTag{Name: tag, Above: 90_000})
	if err != nil {
		t.Fatal(err)
	}
	before, err := manage.Ask(t.Context(), a.Backend(), manage.Next{Tag: tag, N: 5})
	if err != nil {
		t.Fatal(err)
	}
	stop()

	store, err := sqldb.Open("sqlite:"+filepath.Join(dir, "leaf.db"), sqldb.Config{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	db, err := sql.Open("sqlite", "file:"+filepath.Join(dir, "leaf.db"))
	if err != nil {
		t.Fatal(err)
	}
	execute(t, db, "UPDATE leaf_alloc SET max_id = 1 WHERE biz_tag = ?", tag)
	execute(t, db, "DELETE FROM leaf_repair_node") // answers of nodes are deleted in time, notices of repairs are not
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	loseFence(t, dir)
	if _, err := app.RebuildFence(t.Context(), cfg); err != nil {
		t.Fatal(err)
	}
	if _, err := store.Raise(t.Context(), tag, repair.Plan.First); err != nil { // as ranges do that others refuse
		t.Fatal(err)
	}
	a, stop = start(t, cfg)
	if got, err := manage.Ask(t.Context(), a.Backend(), manage.Next{Tag: tag, N: 5}); !errors.Is(err, leaf.ErrRegress) {
		t.Errorf("IDs %v, %v after the fence was rebuilt, and %v before; want ErrRegress", got, err, before)
	}
	stop()
}

// loseFence deletes the fence files of a data directory.
func loseFence(t *testing.T, dir string) {
	t.Helper()
	for _, name := range []string{"fence", "fence-end"} {
		if err := os.Remove(filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
}

// TestFenceBesideARowThatCannotBeRead: a mark at 0 would say that the tag has no numbers. So would one of a row at -1, as the alarm
// row asks for: a repair that asks this node would move the row below what this node has forgotten. A max_id that can be read is
// not to be replaced by a number of the operator.
func TestFenceBesideARowThatCannotBeRead(t *testing.T) {
	t.Parallel()
	for damage, right := range map[string]int{"max_id = 'abc'": 1001, "max_id = -1": 1001, "step = 'abc'": 1000} {
		t.Run(damage, func(t *testing.T) {
			t.Parallel()
			column, _, _ := strings.Cut(damage, " ")
			dir := filepath.Join(shortDir(t), "d")
			cfg := embedded(dir)
			_, stop := start(t, cfg)
			stop()
			db := openFile(t, filepath.Join(dir, "leaf.db"))
			loosen(t, db)
			execute(t, db, "UPDATE leaf_alloc SET "+damage)
			loseFence(t, dir)
			_, err := app.RebuildFence(t.Context(), cfg)
			for _, want := range []string{
				`the row of tag "leaf-segment-test" in store "default" cannot be read`, column, "leave the rest of the row as it is. Only if that is max_id, take",
			} {
				if !errors.Is(err, leaf.ErrConflict) || !strings.Contains(err.Error(), want) {
					t.Fatalf("got %v, want a conflict that says %q", err, want)
				}
			}
			execute(t, db, "UPDATE leaf_alloc SET "+column+" = ?", right)
			if tags, err := app.RebuildFence(t.Context(), cfg); err != nil || len(tags) != 1 {
				t.Errorf("with the row corrected: %v, %v", tags, err)
			}
		})
	}
}

// TestFenceRebuiltWithOneOfTwoStores: the command is typed without one of the node's stores. The tags
// there would not be latched, and a database that lost commits would repeat them.
func TestFenceRebuiltWithOneOfTwoStores(t *testing.T) {
	t.Parallel()
	c, _, stop, a, b, issued := copied(t)
	stop()
	execute(t, a, "DELETE FROM leaf_alloc")
	loseFence(t, c.DataDir)
	part := c
	part.Stores, part.TagRules = c.Stores[:1], nil
	tags, err := app.RebuildFence(t.Context(), part)
	if err == nil {
		execute(t, b, "UPDATE leaf_alloc SET max_id = 1 WHERE biz_tag = 'user'") // it has lost commits
		node, _ := start(t, c)
		status, id := get(t, node, "/api/segment/get/user")
		t.Fatalf("the fence was made anew with %v; then the node answers %d %s, and that it had issued this before is %v", tags, status, id, issued[id])
	}
	if !errors.Is(err, leaf.ErrConflict) || !strings.Contains(err.Error(), "give this command the stores and tag rules of the node") {
		t.Errorf("one of two stores: %v, want a conflict that says what to do", err)
	}
	if tags, err := app.RebuildFence(t.Context(), c); err != nil || !slices.Contains(tags, "user") {
		t.Errorf("both stores: %v, %v", tags, err)
	}
}

// TestRebuiltFenceIsAboveTheBoard: a dump of leaf_alloc alone was put back, and the fence files of
// the node are gone. What the node once answered about its numbers is still on the board: a repair
// goes on above it. A row of the board that no node wrote counts for nothing.
func TestRebuiltFenceIsAboveTheBoard(t *testing.T) {
	t.Parallel()
	const tag, known = "leaf-segment-test", 95_000
	dir := filepath.Join(shortDir(t), "d")
	cfg := embedded(dir)
	_, stop := start(t, cfg)
	stop()
	folder, err := datadir.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	node := folder.NodeID()
	if err := folder.Close(); err != nil {
		t.Fatal(err)
	}
	store, err := sqldb.Open("sqlite:"+filepath.Join(dir, "leaf.db"), sqldb.Config{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	if err := errors.Join(
		store.Answer(t.Context(), segment.Answer{Tag: tag, Node: node, Asked: 1, High: known}),
		store.Answer(t.Context(), segment.Answer{Tag: tag, Node: "odd", Asked: 1, High: math.MaxInt64}),
		store.Answer(t.Context(), segment.Answer{Tag: "lost", Node: node, High: known}),
		store.KeepEnds(t.Context(), map[string]int64{"deleted": known}),
		store.Answer(t.Context(), segment.Answer{Tag: "deleted", Node: node, High: known}),
		store.Post(t.Context(), segment.Notice{Tag: tag, Repaired: math.MaxInt64}),
	); err != nil {
		t.Fatal(err)
	}
	loseFence(t, dir)
	if _, err := app.RebuildFence(t.Context(), cfg); err != nil {
		t.Fatal(err)
	}
	db := openFile(t, filepath.Join(dir, "leaf.db")) // an operator removes what no node wrote
	execute(t, db, "DELETE FROM leaf_repair")
	execute(t, db, "DELETE FROM leaf_repair_node WHERE node = 'odd'")
	a, stop := start(t, cfg)
	defer stop()
	repair, err := manage.Ask(t.Context(), a.Backend(), manage.RepairTag{Name: tag})
	if err != nil || repair.Plan.First <= known || repair.Plan.First > known+10 {
		t.Errorf("repair: %+v, %v; want that IDs go on above %d", repair.Plan, err, known)
	}
	for name, want := range map[string]segment.RepairNode{ // no rows; the board keeps the end of the one that a command deleted
		"lost":    {Node: node, End: known, State: segment.RepairNodeLatched},
		"deleted": {Node: node, State: segment.RepairNodeOK},
	} {
		plan, err := manage.Ask(t.Context(), a.Backend(), manage.PlanRepair{Name: name})
		if err != nil || !slices.Contains(plan.Nodes, want) {
			t.Errorf("tag %s: %+v, %v; want that the node says %+v", name, plan.Nodes, err, want)
		}
	}
}

// TestRebuiltFenceAfterAnotherDivision: nodes have told the board of a row by which a tag was divided before. By the rule of now, the
// row is in no database: nothing is loaded from it, and no command would repair it, so its alarm would never end.
func TestRebuiltFenceAfterAnotherDivision(t *testing.T) {
	t.Parallel()
	dir, c := divided(t)
	c.TagRules = []string{"orders*=a,b*1000", "*=a"}
	if _, err := app.ApplySchema(t.Context(), c, app.Options{}, &app.RuleChange{}); err != nil {
		t.Fatal(err)
	}
	_, stop := start(t, c)
	stop()
	const before, now = "orders~1of3~1000", "orders~1of2~1000"
	store, err := sqldb.Open("sqlite:"+filepath.Join(dir, "a.db"), sqldb.Config{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	for _, row := range []string{before, now} {
		if err := store.Post(t.Context(), segment.Notice{Tag: row, Repaired: 5000}); err != nil {
			t.Fatal(err)
		}
	}
	loseFence(t, c.DataDir)
	if _, err := app.RebuildFence(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	a, stop := start(t, c)
	defer stop()
	if plan, err := manage.Ask(t.Context(), a.Backend(), manage.PlanRepair{Name: before}); !errors.Is(err, leaf.ErrUnknownTag) {
		t.Errorf("plan to repair %s: %+v, %v; want ErrUnknownTag", before, plan, err)
	}
	content, err := os.ReadFile(filepath.Join(c.DataDir, "fence"))
	if err != nil || strings.Contains(string(content), before) || !strings.Contains(string(content), now) {
		t.Errorf("the fence is %s, %v; want a mark of %s, and none of %s", content, err, now, before)
	}
}

// TestRebuiltFenceBesideAnUnreadBoard: what nodes have told of their numbers is perhaps there, and the
// user may not read it. A mark below it would be released by an old repair.
func TestRebuiltFenceBesideAnUnreadBoard(t *testing.T) {
	t.Parallel()
	d := server.MariaDB(t)
	cfg := embedded(filepath.Join(shortDir(t), "d"))
	cfg.Stores = []string{d.URL()}
	applySchema(t, cfg)
	_, stop := start(t, cfg)
	stop()
	loseFence(t, cfg.DataDir)
	admin, user := d.Open(t), "u_"+strings.ToLower(rand.Text())[:12]
	execute(t, admin, "CREATE USER '"+user+"' IDENTIFIED BY 'secret'")
	t.Cleanup(func() { _, _ = admin.ExecContext(context.Background(), "DROP USER '"+user+"'") })
	for _, table := range []string{"leaf_alloc", "leaf_meta", "leaf_tag_option"} {
		execute(t, admin, "GRANT SELECT, INSERT, UPDATE, DELETE ON "+d.Name()+"."+table+" TO '"+user+"'")
	}
	u, err := url.Parse(d.URL())
	if err != nil {
		t.Fatal(err)
	}
	u.User = url.UserPassword(user, "secret")
	narrow := cfg
	narrow.Stores = []string{u.String()}
	if _, err := app.RebuildFence(t.Context(), narrow); !errors.Is(err, segment.ErrDenied) {
		t.Errorf("by a user who may not read the board: %v; want ErrDenied", err)
	}
	if _, err := app.RebuildFence(t.Context(), cfg); err != nil {
		t.Error(err)
	}
}
