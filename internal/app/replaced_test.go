package app_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/leaf-idgen/leaf/internal/app"
	"github.com/leaf-idgen/leaf/internal/config"
	"github.com/leaf-idgen/leaf/internal/manage"
)

// atRegistry calls f with the registry of a configuration, as a command does.
func atRegistry(t *testing.T, c config.Config, f func(b manage.Backend) error) {
	t.Helper()
	b, done, err := app.Open(t.Context(), c, app.Options{}, true, app.Registry)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(f(b), done()); err != nil {
		t.Fatal(err)
	}
}

// TestReplacedFileEndsTheClaim is rule Q: a backup takes the place of a node's SQLite file. The node, which issues nothing more,
// takes no worker ID there, where other nodes could not have it.
func TestReplacedFileEndsTheClaim(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	mine, other := filepath.Join(folder, "mine.db"), filepath.Join(folder, "other.db")
	c := embedded(shortDir(t))
	c.Snowflake.Renew = 100 * time.Millisecond
	c.Stores = []string{"sqlite:" + mine}
	if _, err := app.ApplySchema(t.Context(), c, app.Options{}, nil); err != nil {
		t.Fatal(err)
	}
	atRegistry(t, c, func(b manage.Backend) error {
		_, err := manage.Ask(t.Context(), b, manage.InitWorkers{})
		return err
	})
	backup, err := os.ReadFile(mine)
	if err == nil {
		err = os.WriteFile(other, backup, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	a, err := app.New(c, app.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = a.Stop(context.Background()) }) // it may say that nothing can be written any more
	var held atomic.Bool
	inside, free := make(chan struct{}, 100), make(chan struct{})
	release := sync.OnceFunc(func() { close(free) })
	t.Cleanup(release) // before Stop
	a.LookAt(func() error {
		if held.Load() {
			inside <- struct{}{}
			<-free
		}
		return nil
	})
	if err := a.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	ids(t, a, 1)
	held.Store(true)
	<-inside // the node has looked at its database, and not yet looked again
	for _, end := range []string{"-wal", "-shm"} {
		if err := os.Remove(mine + end); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Rename(other, mine); err != nil {
		t.Fatal(err)
	}
	db := openFile(t, mine)
	claims := func() int64 { return count(t, db, "SELECT COUNT(*) FROM leaf_worker") }
	until(t, "the node that has lost its claim looks before it takes another number", func() bool { return a.LostAFile() || claims() > 0 })
	release()
	until(t, "the node ends its claim", a.HoldsNoWorker)
	if n := claims(); n > 0 {
		t.Errorf("%d claims in the backup; want none", n)
	}
}
