package app_test

import (
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/leaf-idgen/leaf/internal/manage"
	"github.com/leaf-idgen/leaf/segment"
)

// TestOwnersOfAnotherCluster: the content of another cluster's database, whose nodes run, is loaded into the database of a
// node. The node takes no call for a tag in strict order to the owners that are recorded there.
func TestOwnersOfAnotherCluster(t *testing.T) {
	t.Parallel()
	const theirs = 1_000_000
	node := func(dir string, first int64) (ask func() (code int, id int64)) {
		c := ordered(t, dir)
		c.Order.MaxWait = 500 * time.Millisecond
		a, _ := start(t, c)
		row := segment.NewRow{Tag: "order", Start: first, Step: 1000, Options: segment.Options{Order: segment.OrderStrict}}
		until(t, "the tag is made", func() bool {
			_, err := manage.Ask(t.Context(), a.Backend(), manage.CreateTag{NewRow: row})
			return err == nil
		})
		ask = func() (int, int64) {
			code, text := get(t, a, "/api/segment/get/order")
			id, _ := strconv.ParseInt(text, 10, 64)
			return code, id
		}
		until(t, "the tag is served", func() bool { code, _ := ask(); return code == 200 })
		return ask
	}
	x, y := shortDir(t), shortDir(t)
	ask, askThem := node(x, 1), node(y, theirs)
	db := openFile(t, filepath.Join(x, "one.db"))
	db.SetMaxOpenConns(1) // ATTACH is of a connection
	execute(t, db, "ATTACH '"+filepath.Join(y, "one.db")+"' AS other")
	dump := "BEGIN IMMEDIATE"
	for _, table := range []string{"leaf_alloc", "leaf_meta", "leaf_slot", "leaf_slot_bound", "leaf_slot_namespace"} {
		dump += "; DELETE FROM main." + table + "; INSERT INTO main." + table + " SELECT * FROM other." + table
	}
	execute(t, db, dump+"; COMMIT")
	execute(t, db, "DETACH other")
	until(t, "the node issues no more", func() bool {
		code, id := ask()
		if id >= theirs {
			t.Fatalf("ID %d of the other cluster", id)
		}
		return code == 503
	})
	if code, id := askThem(); code != 200 || id < theirs {
		t.Errorf("the other cluster answers %d, %d", code, id)
	}
}
