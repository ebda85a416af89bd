package datadir_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/driver/datadir"
	"github.com/leaf-idgen/leaf/driver/memory"
	"github.com/leaf-idgen/leaf/segment"
	"github.com/leaf-idgen/leaf/snowflake"
	"github.com/leaf-idgen/leaf/worker"
)

// TestTwoAllocators: a second Allocator of the process on one directory is refused until the first is
// closed. Each would drop what the other one's fence says.
func TestTwoAllocators(t *testing.T) {
	t.Parallel()
	dir, err := datadir.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = dir.Close() })
	router, err := segment.NewRouter([]segment.NamedStore{{Name: "default", Store: memory.New()}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	cfg := segment.Config{NodeID: dir.NodeID()}
	first, err := segment.New(router, dir, cfg)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := segment.New(router, dir, cfg); !errors.Is(err, leaf.ErrConflict) {
		t.Errorf("two at once: %v; want ErrConflict", err)
	}
	if err := first.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	second, err := segment.New(router, dir, cfg)
	if err != nil {
		t.Fatalf("one after the other: %v", err)
	}
	if err := second.Close(t.Context()); err != nil {
		t.Error(err)
	}
}

// TestHolderWhoseFolderIsGone: another process may have the folder that takes its place, and with it the fixed number. A program
// that does not call Check stops at the bound that is on the disk.
func TestHolderWhoseFolderIsGone(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "data")
	start := func() *worker.Holder {
		dir := open(t, path)
		h, err := worker.New(worker.NewStatic(7), dir, worker.Config{
			Layout: snowflake.Leaf(), Numbers: leaf.Range{Lo: 0, Hi: 1024}, Namespace: "n", Address: "127.0.0.1:1", NodeID: dir.NodeID(),
			Ahead: 10 * time.Millisecond, Jump: 10 * time.Millisecond, Margin: time.Millisecond,
		})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = h.Close(context.Background()) })
		if err := h.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		return h
	}
	next := func(h *worker.Holder, issues bool) {
		deadline := time.Now().Add(20 * time.Second)
		for time.Now().Before(deadline) {
			if _, err := h.Next(t.Context(), ""); (err == nil) == issues {
				return
			}
			time.Sleep(time.Millisecond)
		}
		t.Fatalf("after 20 s it does not hold that the Holder issues = %v", issues)
	}
	first := start()
	next(first, true)
	if err := os.Rename(path, path+"-away"); err != nil {
		t.Fatal(err)
	}
	second := start()
	next(first, false)
	next(second, true)
}

// TestTwoHolders: a second Holder of the process on one directory is refused until the first is closed.
// Both would issue with the one fixed number.
func TestTwoHolders(t *testing.T) {
	t.Parallel()
	dir := open(t, t.TempDir())
	cfg := worker.Config{Layout: snowflake.Leaf(), Numbers: leaf.Range{Lo: 0, Hi: 1024}, Namespace: "n", Address: "127.0.0.1:1", NodeID: dir.NodeID()}
	first, err := worker.New(worker.NewStatic(7), dir, cfg)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := worker.New(worker.NewStatic(7), dir, cfg); !errors.Is(err, leaf.ErrConflict) {
		t.Errorf("two at once: %v; want ErrConflict", err)
	}
	for _, name := range []string{"one that never began", "one that began"} {
		if err := first.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		if first, err = worker.New(worker.NewStatic(7), dir, cfg); err != nil {
			t.Fatalf("after %s: %v", name, err)
		}
		if err := first.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	_ = first.Close(t.Context())
}
