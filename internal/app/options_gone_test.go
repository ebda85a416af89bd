package app_test

import (
	"log/slog"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/leaf-idgen/leaf/internal/app"
	"github.com/leaf-idgen/leaf/internal/manage"
	"github.com/leaf-idgen/leaf/segment"
)

// TestOptionsGone: the table with the options and limits of tags vanishes. A node that runs goes on with what it has read, and
// its log says what to do.
func TestOptionsGone(t *testing.T) {
	t.Parallel()
	dir := shortDir(t)
	c := ordered(t, dir)
	c.Segment.SyncInterval = time.Second
	log := &lockedBuffer{}
	a, _ := startWith(t, c, app.Options{Logger: slog.New(slog.NewTextHandler(log, nil))})
	createStrict(t, a, "order")
	if _, err := manage.Ask(t.Context(), a.Backend(), manage.CreateTag{NewRow: segment.NewRow{Tag: "shut", Start: 1, Step: 10}}); err != nil {
		t.Fatal(err)
	}
	if _, err := manage.Ask(t.Context(), a.Backend(), manage.SetTagLimit{Name: "shut", LimitChange: manage.LimitChange{Blocked: new(true)}}); err != nil {
		t.Fatal(err)
	}
	holds := func() bool {
		served, _ := get(t, a, "/api/segment/get/order")
		shut, _ := get(t, a, "/api/segment/get/shut")
		return served == http.StatusOK && shut == http.StatusForbidden && app.Strict(a, "order")
	}
	until(t, "the options and limits are in force", holds)
	db := openFile(t, filepath.Join(dir, "one.db"))
	execute(t, db, "ALTER TABLE leaf_tag_option RENAME TO gone")
	until(t, "the log says that the table is gone", func() bool {
		return strings.Contains(log.String(), "the table leaf_tag_option is gone") && strings.Contains(log.String(), "restore the table from a backup")
	})
	for range 2 * int(c.Segment.SyncInterval/(100*time.Millisecond)) { // through some readings of the tags and limits
		if !holds() {
			t.Fatalf("the node does not go on with what it has read:\n%s", log)
		}
		time.Sleep(100 * time.Millisecond)
	}
}
