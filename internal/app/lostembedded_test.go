package app_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/internal/app"
	"github.com/leaf-idgen/leaf/internal/manage"
	"github.com/leaf-idgen/leaf/segment"
)

// TestEmbeddedFileIsLostWhileNoNodeRuns: another node shared the file and has taken higher numbers than
// the node whose directory it is in. That one neither makes the file again by itself nor lets a tag
// begin at its own fence there; its error says what does.
func TestEmbeddedFileIsLostWhileNoNodeRuns(t *testing.T) {
	t.Parallel()
	const tag = "leaf-segment-test"
	dir := shortDir(t)
	a, b := embedded(filepath.Join(dir, "a")), embedded(filepath.Join(dir, "b"))
	a.Snowflake.Enable, b.Snowflake.Enable = false, false
	a.Segment.FixedStep, b.Segment.FixedStep = true, true
	file := filepath.Join(a.DataDir, "leaf.db")
	b.Stores = []string{"sqlite:" + file}
	issued := map[string]bool{}
	first, stopA := start(t, a)
	_, id := get(t, first, "/api/segment/get/"+tag)
	issued[id] = true
	until(t, "the node remembers its database", func() bool {
		content, err := os.ReadFile(filepath.Join(a.DataDir, "cluster"))
		return err == nil && strings.Contains(string(content), `"leaf.db"`)
	})
	other, stopB := start(t, b)
	for range 5 {
		_, id := get(t, other, "/api/segment/get/"+tag)
		issued[id] = true
	}
	stopA()
	stopB()
	for _, end := range []string{"", "-wal", "-shm"} {
		_ = os.Remove(file + end)
	}

	node, err := app.New(a, app.Options{})
	if err == nil {
		defer func() { _ = node.Stop(t.Context()) }()
		if err := node.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		for range 3000 {
			if status, id := get(t, node, "/api/segment/get/"+tag); status == 200 && issued[id] {
				t.Fatalf("ID %s twice", id)
			}
		}
		t.Fatal("the node has made the database again")
	}
	refused := func(what string, err error) {
		t.Helper()
		if !errors.Is(err, leaf.ErrConflict) || !strings.Contains(err.Error(), "run leaf schema apply --data-dir") {
			t.Errorf("%s: %v; want a conflict that says what to do", what, err)
		}
	}
	refused("start", err)
	for what, open := range map[string]app.Without{"a command about tags": app.Stores, "a command about worker IDs": app.Registry} {
		c := a
		c.Snowflake.Enable = true
		_, done, err := app.Open(t.Context(), c, app.Options{}, true, open)
		refused(what, err)
		if err == nil {
			if err := done(); err != nil {
				t.Error(err)
			}
		}
	}
	if _, err := os.Stat(file); err == nil {
		t.Fatal("a command has made the file")
	}
	applySchema(t, a)

	commands, done, err := app.Open(t.Context(), a, app.Options{}, false, app.Stores)
	if err != nil {
		t.Fatal(err)
	}
	if all, err := manage.Ask(t.Context(), commands, manage.ListTags{}); err != nil || len(all) > 0 {
		t.Errorf("the command has made the tags %v, %v", all, err)
	}
	if _, err := manage.Ask(t.Context(), commands, manage.CreateTag{NewRow: segment.NewRow{Tag: tag, Start: 50_000, Step: 10}}); err != nil {
		t.Error(err)
	}
	if err := done(); err != nil {
		t.Error(err)
	}
	again, _ := start(t, a)
	if status, id := get(t, again, "/api/segment/get/"+tag); status != 200 || id != "50000" {
		t.Errorf("got %d %s, want 50000", status, id)
	}
}

// TestLostEmbeddedFileIsMadeBySnowflakeMode: leaf.db, which another node may have shared, is lost, and the node is started with
// snowflake mode alone, which makes the file again. Segment mode must still miss the one that was lost.
func TestLostEmbeddedFileIsMadeBySnowflakeMode(t *testing.T) {
	t.Parallel()
	c := embedded(shortDir(t))
	known := func() string {
		content, _ := os.ReadFile(filepath.Join(c.DataDir, "cluster"))
		return string(content)
	}
	_, stop := start(t, c)
	until(t, "the node remembers its database", func() bool { return strings.Contains(known(), `"leaf.db":"`) })
	stop()
	before := known()
	for _, end := range []string{"", "-wal", "-shm"} {
		_ = os.Remove(filepath.Join(c.DataDir, "leaf.db"+end))
	}
	alone := c
	alone.Segment.Enable = false
	a, stop := start(t, alone)
	until(t, "the node has read the ID of the file", func() bool {
		_, body := get(t, a, "/readyz")
		return strings.Contains(body, `"cluster":"`)
	})
	stop()
	if after := known(); after != before {
		t.Errorf("the data directory remembers %s; want %s", after, before)
	}
	node, err := app.New(c, app.Options{})
	if err == nil {
		err = errors.Join(node.Start(t.Context()), node.Stop(t.Context()))
	}
	if _, ok := errors.AsType[*segment.ClusterError](err); !ok {
		t.Errorf("start of segment mode on the file that was made again: %v; want a ClusterError", err)
	}
	if !errors.Is(err, leaf.ErrConflict) || !strings.Contains(err.Error(), "move the present file with its -wal and -shm to another folder, start the node again, and do what it says then") {
		t.Errorf("start of segment mode on the file that was made again: %v; want a conflict that says what to do", err)
	}
	for _, end := range []string{"", "-wal", "-shm"} {
		_ = os.Rename(filepath.Join(c.DataDir, "leaf.db"+end), filepath.Join(t.TempDir(), "leaf.db"+end))
	}
	if _, err := app.New(c, app.Options{}); !errors.Is(err, leaf.ErrConflict) || !strings.Contains(err.Error(), "run leaf schema apply --data-dir") {
		t.Errorf("start without the file: %v; want a conflict that says how to make it", err)
	}
}
