package app_test

import (
	"errors"
	"testing"
	"time"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/driver/datadir"
	"github.com/leaf-idgen/leaf/internal/app"
)

// TestStartWaitsForACommand: a command holds the data directory for a moment, and the node that
// starts then waits for it, as another command does. It does not wait for a node.
func TestStartWaitsForACommand(t *testing.T) {
	t.Parallel()
	c := embedded(shortDir(t))
	held, err := datadir.Open(c.DataDir)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := app.New(c, app.Options{}); !errors.Is(err, leaf.ErrNotReady) {
		t.Fatalf("beside a holder that stays: got %v, want ErrNotReady", err)
	}
	time.AfterFunc(200*time.Millisecond, func() { _ = held.Close() })
	node, err := app.New(c, app.Options{})
	if err != nil {
		t.Fatalf("beside a command that ends: %v", err)
	}
	if err := node.Stop(t.Context()); err != nil {
		t.Error(err)
	}
	again, err := datadir.Open(c.DataDir)
	if err != nil {
		t.Fatal(err)
	}
	time.AfterFunc(200*time.Millisecond, func() { _ = again.Close() })
	_, done, err := app.Open(t.Context(), c, app.Options{}, true, app.Stores)
	if err != nil {
		t.Fatalf("a command beside a command that ends: %v", err)
	}
	if err := done(); err != nil {
		t.Error(err)
	}
}
