package app_test

import (
	"database/sql"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/driver/sqldb"
	"github.com/leaf-idgen/leaf/internal/app"
	"github.com/leaf-idgen/leaf/internal/manage"
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
	if _, err := db.ExecContext(t.Context(), "UPDATE leaf_alloc SET max_id = 1 WHERE biz_tag = ?", tag); err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"fence", "fence-end"} {
		if err := os.Remove(filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
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

// TestFenceBesideARowThatCannotBeRead: a mark at 0 would say that the tag has no numbers.
func TestFenceBesideARowThatCannotBeRead(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(shortDir(t), "d")
	cfg := embedded(dir)
	_, stop := start(t, cfg)
	stop()
	db := openFile(t, filepath.Join(dir, "leaf.db"))
	loosen(t, db)
	execute(t, db, "UPDATE leaf_alloc SET max_id = 'abc'")
	for _, name := range []string{"fence", "fence-end"} {
		if err := os.Remove(filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	_, err := app.RebuildFence(t.Context(), cfg)
	if want := `the row of tag "leaf-segment-test" in store "default" cannot be read`; !errors.Is(err, leaf.ErrConflict) || !strings.Contains(err.Error(), want) {
		t.Fatalf("got %v, want a conflict that says %q", err, want)
	}
	execute(t, db, "UPDATE leaf_alloc SET max_id = 1001")
	if tags, err := app.RebuildFence(t.Context(), cfg); err != nil || len(tags) != 1 {
		t.Errorf("with the row corrected: %v, %v", tags, err)
	}
}
