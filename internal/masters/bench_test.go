package masters_test

import (
	"testing"

	"github.com/leaf-idgen/leaf/driver/datadir"
	"github.com/leaf-idgen/leaf/driver/memory"
	"github.com/leaf-idgen/leaf/internal/masters"
	"github.com/leaf-idgen/leaf/segment"
)

// BenchmarkNext compares a tag in two databases with the engine below, which serves a tag in one.
func BenchmarkNext(b *testing.B) {
	west, east := memory.New(), memory.New()
	rule, err := segment.ParseTagRule("orders=west,east*1000")
	if err != nil {
		b.Fatal(err)
	}
	router, err := segment.NewRouter([]segment.NamedStore{{Name: "west", Store: west}, {Name: "east", Store: east}}, []segment.TagRule{rule})
	if err != nil {
		b.Fatal(err)
	}
	m := router.Masters("orders")
	for i, s := range []*memory.Store{west, east} {
		s.Put(segment.Row{Tag: m.Part("orders", i), MaxID: 1, Step: 10_000_000})
		if err := s.RecordRule(router.Binding(i)); err != nil {
			b.Fatal(err)
		}
	}
	dir, err := datadir.Open(b.TempDir())
	if err != nil {
		b.Fatal(err)
	}
	engine, err := segment.New(router, dir, segment.Config{NodeID: dir.NodeID()})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = engine.Close(b.Context()); _ = dir.Close() })
	if err := engine.Start(b.Context()); err != nil {
		b.Fatal(err)
	}
	x, err := masters.New(engine, router, masters.Config{})
	if err != nil {
		b.Fatal(err)
	}
	b.Run("one", func(b *testing.B) {
		for b.Loop() {
			if _, err := engine.Next(b.Context(), "orders~2of2~1000"); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("several", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := x.Next(b.Context(), "orders"); err != nil {
				b.Fatal(err)
			}
		}
	})
}
