package datadir_test

import (
	"errors"
	"testing"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/driver/datadir"
	"github.com/leaf-idgen/leaf/driver/memory"
	"github.com/leaf-idgen/leaf/segment"
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
