package app_test

import (
	"context"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/leaf-idgen/leaf/internal/config"

	"github.com/leaf-idgen/leaf/internal/app"
	"github.com/leaf-idgen/leaf/internal/manage"
	"github.com/leaf-idgen/leaf/worker"
)

// inFile makes a node claim in an SQLite file that other nodes may use, too: as its
// store, or as its registry only.
var inFile = map[string]func(c *config.Config, url string){
	"store": func(c *config.Config, url string) { c.Stores = []string{url} },
	"registry": func(c *config.Config, url string) {
		c.Snowflake.Registry, c.Snowflake.Addresses = "sql", []string{url}
	},
}

func makeTables(t *testing.T, url string) {
	t.Helper()
	c := embedded(shortDir(t))
	c.Stores = []string{url}
	if _, err := app.ApplySchema(t.Context(), c, app.Options{}, nil); err != nil {
		t.Fatal(err)
	}
}

// inStoreFile is a valid configuration for a node on a database of its own, in a file outside of its data directory.
func inStoreFile(t *testing.T) config.Config {
	t.Helper()
	c := embedded(shortDir(t))
	c.Stores = []string{"sqlite:" + filepath.Join(t.TempDir(), "store.db")}
	makeTables(t, c.Stores[0])
	return c
}

// mustWait: another node may still hold the number. A slow disk delays the first claim, and the node then says
// that it has no number yet.
func mustWait(t *testing.T, a *app.App) {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		status, body := get(t, a, "/api/snowflake/get/x")
		if status == http.StatusServiceUnavailable && strings.Contains(body, "snowflake mode is waiting") {
			return
		}
		if status != http.StatusServiceUnavailable || time.Now().After(deadline) {
			t.Fatalf("got %d %s, want 503: it waits", status, body)
		}
	}
}

// TestFileOfOthersIsNotNew: a node serves from a file, somebody removes the file, and
// another node, whose data directory is empty, makes it again. The first node may still
// issue, so the second one waits (rule D).
func TestFileOfOthersIsNotNew(t *testing.T) {
	t.Parallel()
	for name, use := range inFile {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			file := filepath.Join(shortDir(t), "w.db")
			node := func() config.Config {
				c := embedded(shortDir(t))
				c.Snowflake.WorkerRange = "5-6" // the first node claims in the new file, too, when its next renewal comes before the second starts
				use(&c, "sqlite:"+file)
				return c
			}
			makeTables(t, "sqlite:"+file)
			w, done, err := app.Open(t.Context(), node(), app.Options{}, true, app.Registry)
			if err != nil {
				t.Fatal(err)
			}
			if err := errors.Join(manage.Tell(t.Context(), w, manage.InitWorkers{}), done()); err != nil {
				t.Fatal(err)
			}
			first, err := app.New(node(), app.Options{})
			if err != nil {
				t.Fatal(err)
			}
			// Its registry is gone when it stops, so it may say that it released nothing.
			t.Cleanup(func() { _ = first.Stop(context.Background()) })
			if err := first.Start(t.Context()); err != nil {
				t.Fatal(err)
			}
			awaitStatus(t, first, "/api/snowflake/get/x", 200)

			for _, end := range []string{"", "-wal", "-shm"} {
				if err := os.Remove(file + end); err != nil {
					t.Fatal(err)
				}
			}
			if name == "registry" {
				// Nothing but the command makes the tables of a registry beside the store.
				second, err := app.New(node(), app.Options{})
				if err != nil {
					t.Fatal(err)
				}
				if err := second.Start(t.Context()); !errors.Is(err, worker.ErrSchema) {
					t.Errorf("without the file: got %v, want ErrSchema", err)
				}
				if err := second.Stop(t.Context()); err != nil {
					t.Error(err)
				}
				makeTables(t, "sqlite:"+file)
			}
			second, _ := start(t, node())
			mustWait(t, second)
		})
	}
}

// TestUnusedIsOfTheEmbeddedDatabase: a command made leaf.db in the data directory, and
// its word speaks of that file only.
func TestUnusedIsOfTheEmbeddedDatabase(t *testing.T) {
	t.Parallel()
	for name, use := range inFile {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := embedded(shortDir(t))
			_, done, err := app.Open(t.Context(), c, app.Options{}, false, app.Stores)
			if err != nil {
				t.Fatal(err)
			}
			if err := done(); err != nil {
				t.Fatal(err)
			}
			url := "sqlite:" + filepath.Join(shortDir(t), "w.db") // empty, perhaps because it was wiped
			makeTables(t, url)
			use(&c, url)
			a, _ := start(t, c)
			mustWait(t, a)
		})
	}
}

// TestDeletedBeforeTheFirstWorkerID: leaf.db was made here without a worker ID being
// claimed from here, other nodes may have shared the file, and it was deleted.
func TestDeletedBeforeTheFirstWorkerID(t *testing.T) {
	t.Parallel()
	for name, makeIt := range map[string]func(t *testing.T, c config.Config){
		"by segment mode": func(t *testing.T, c config.Config) {
			t.Helper()
			c.Snowflake.Enable = false
			_, stop := start(t, c)
			stop()
		},
		"by a command": func(t *testing.T, c config.Config) {
			t.Helper()
			_, done, err := app.Open(t.Context(), c, app.Options{}, false, app.Stores)
			if err != nil {
				t.Fatal(err)
			}
			if err := done(); err != nil {
				t.Fatal(err)
			}
		},
		"by a command for worker IDs": func(t *testing.T, c config.Config) {
			t.Helper()
			_, done, err := app.Open(t.Context(), c, app.Options{}, false, app.Registry)
			if err != nil {
				t.Fatal(err)
			}
			if err := done(); err != nil {
				t.Fatal(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := embedded(shortDir(t))
			makeIt(t, c)
			for _, file := range []string{"leaf.db", "leaf.db-wal", "leaf.db-shm", "cluster"} { // the last refuses the start, where it was written in time
				if err := os.Remove(filepath.Join(c.DataDir, file)); err != nil && !os.IsNotExist(err) {
					t.Fatal(err)
				}
			}
			a, _ := start(t, c)
			mustWait(t, a)
		})
	}
}

// TestDemoTagAfterACommand: a command about worker IDs makes the embedded database before
// its first node does. The node still makes the demo tag that its log names, once.
func TestDemoTagAfterACommand(t *testing.T) {
	t.Parallel()
	c := embedded(shortDir(t))
	w, done, err := app.Open(t.Context(), c, app.Options{}, true, app.Registry)
	if err != nil {
		t.Fatal(err)
	}
	_, err = manage.Ask(t.Context(), w, manage.ListWorkers{})
	if err := errors.Join(err, done()); err != nil {
		t.Fatal(err)
	}
	a, stop := start(t, c)
	if status, body := get(t, a, "/api/segment/get/leaf-segment-test"); status != 200 || body != "1" {
		t.Errorf("got %d %s, want 1", status, body)
	}
	if err := manage.Tell(t.Context(), a.Backend(), manage.DeleteTag{Name: "leaf-segment-test"}); err != nil {
		t.Error(err)
	}
	stop()
	a, _ = start(t, c)
	if status, body := get(t, a, "/api/segment/get/leaf-segment-test"); status != 404 {
		t.Errorf("a deleted demo tag is back: %d %s", status, body)
	}
}

// TestDemoTagDeletedByACommand: a command deletes the demo tag before the first node starts.
// Neither the next command nor the node makes it again.
func TestDemoTagDeletedByACommand(t *testing.T) {
	t.Parallel()
	c := embedded(shortDir(t))
	b, done, err := app.Open(t.Context(), c, app.Options{}, false, app.Stores)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(manage.Tell(t.Context(), b, manage.DeleteTag{Name: "leaf-segment-test"}), done()); err != nil {
		t.Fatal(err)
	}
	b, done, err = app.Open(t.Context(), c, app.Options{}, false, app.Stores)
	if err != nil {
		t.Fatal(err)
	}
	tags, err := manage.Ask(t.Context(), b, manage.ListTags{})
	if err := errors.Join(err, done()); err != nil || len(tags) > 0 {
		t.Errorf("a command finds %v, %v, want no tag", tags, err)
	}
	a, _ := start(t, c)
	if status, body := get(t, a, "/api/segment/get/leaf-segment-test"); status != 404 {
		t.Errorf("a deleted demo tag is back: %d %s", status, body)
	}
}

// TestUnusedIsOfTheFileThatWasMade: a command made leaf.db, and before the first node a copy of another
// leaf.db was put in its place and its namespace deleted, as docs/OPERATIONS.md says. The word of the
// command speaks of the first one: the worker IDs of the copy were in use, and wait.
func TestUnusedIsOfTheFileThatWasMade(t *testing.T) {
	t.Parallel()
	lost := embedded(shortDir(t))
	a, stop := start(t, lost)
	ids(t, a, 1)
	stop()
	backup, err := os.ReadFile(filepath.Join(lost.DataDir, "leaf.db"))
	if err != nil {
		t.Fatal(err)
	}
	for name, open := range map[string]app.Without{"tags": app.Stores, "worker IDs": app.Registry} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := embedded(shortDir(t))
			_, done, err := app.Open(t.Context(), c, app.Options{}, false, open)
			if err != nil {
				t.Fatal(err)
			}
			if err := done(); err != nil {
				t.Fatal(err)
			}
			file := filepath.Join(c.DataDir, "leaf.db")
			if err := os.WriteFile(file, backup, 0o600); err != nil { // as cp does it: the file keeps its inode
				t.Fatal(err)
			}
			execute(t, openFile(t, file), "DELETE FROM leaf_worker_namespace")
			node, _ := start(t, c)
			mustWait(t, node)
		})
	}
}
