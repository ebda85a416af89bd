package bench_test

import (
	"context"
	"sync/atomic"
	"testing"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/client/cache"
)

// dense is a source that costs nothing.
type dense struct{ last atomic.Int64 }

func (d *dense) Next(context.Context, string) (int64, error) { return d.last.Add(1), nil }

func (d *dense) NextN(_ context.Context, _ string, n int) ([]leaf.Range, error) {
	end := d.last.Add(int64(n)) + 1
	return []leaf.Range{{Lo: end - int64(n), Hi: end}}, nil
}

// BenchmarkClientCache is one ID from the client's cache, by name and by its handle,
// beside a bare atomic add.
func BenchmarkClientCache(b *testing.B) {
	c, err := cache.New(&dense{}, cache.Config{})
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = c.Close(context.Background()) }()
	tag, err := c.Tag("order")
	if err != nil {
		b.Fatal(err)
	}
	ctx := context.Background()
	var bare atomic.Int64
	for _, bm := range []struct {
		name string
		one  func() error
	}{
		{"atomic", func() error { bare.Add(1); return nil }},
		{"handle", func() error { _, err := tag.Next(ctx); return err }},
		{"name", func() error { _, err := c.Next(ctx, "order"); return err }},
	} {
		b.Run(bm.name, func(b *testing.B) {
			b.ReportAllocs()
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					if err := bm.one(); err != nil {
						b.Error(err)
						return
					}
				}
			})
		})
	}
}
