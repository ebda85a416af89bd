package datadir_test

import (
	"errors"
	"testing"

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
