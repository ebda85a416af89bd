// Package bench_test holds the benchmarks of the hot path. Compare the ratios
// within one run; see README.md beside this file.
package bench_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/leaf-idgen/leaf/driver/datadir"
	"github.com/leaf-idgen/leaf/driver/memory"
	"github.com/leaf-idgen/leaf/segment"
)

// newAllocator returns a running allocator over memory with n tags named
// "tag-0000" and up, whose ranges are long enough that loading does not show.
func newAllocator(b *testing.B, n int) *segment.Allocator {
	b.Helper()
	store := memory.New()
	for i := range n {
		store.Put(segment.Row{Tag: fmt.Sprintf("tag-%04d", i), MaxID: 1, Step: 1 << 30})
	}
	router, err := segment.NewRouter([]segment.NamedStore{{Name: "default", Store: store}}, nil)
	if err != nil {
		b.Fatal(err)
	}
	dir, err := datadir.Open(b.TempDir())
	if err != nil {
		b.Fatal(err)
	}
	alloc, err := segment.New(router, dir, segment.Config{NodeID: dir.NodeID()})
	if err != nil {
		b.Fatal(err)
	}
	if err := alloc.Start(b.Context()); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		if err := alloc.Close(context.Background()); err != nil {
			b.Error(err)
		}
		dir.Close()
	})
	return alloc
}

// The loops are written out, without a helper that takes a function: a call
// through a function value would cost as much as what is measured.

func BenchmarkAtomicAdd(b *testing.B) {
	var n atomic.Int64
	b.Run("goroutines=1", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			n.Add(1)
		}
	})
	b.Run("goroutines=2", func(b *testing.B) {
		b.ReportAllocs()
		b.RunParallel(func(pb *testing.PB) {
			for pb.Next() {
				n.Add(1)
			}
		})
	})
}

func BenchmarkNextByHandle(b *testing.B) {
	alloc := newAllocator(b, 1000)
	ctx := context.Background()
	tag := alloc.Tag("tag-0500")
	b.Run("goroutines=1", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := tag.Next(ctx); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("goroutines=2", func(b *testing.B) {
		b.ReportAllocs()
		b.RunParallel(func(pb *testing.PB) {
			for pb.Next() {
				if _, err := tag.Next(ctx); err != nil {
					b.Error(err)
					return
				}
			}
		})
	})
}

func BenchmarkNextByName(b *testing.B) {
	alloc := newAllocator(b, 1000)
	ctx := context.Background()
	b.Run("goroutines=1", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := alloc.Next(ctx, "tag-0500"); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("goroutines=2", func(b *testing.B) {
		b.ReportAllocs()
		b.RunParallel(func(pb *testing.PB) {
			for pb.Next() {
				if _, err := alloc.Next(ctx, "tag-0500"); err != nil {
					b.Error(err)
					return
				}
			}
		})
	})
}
