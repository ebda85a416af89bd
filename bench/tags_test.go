package bench_test

import (
	"context"
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/leaf-idgen/leaf/driver/datadir"
	"github.com/leaf-idgen/leaf/driver/memory"
	"github.com/leaf-idgen/leaf/segment"
)

// BenchmarkManyTags starts a node with 100,000 tags and reports the time until it
// is ready and the memory that an idle tag keeps.
func BenchmarkManyTags(b *testing.B) {
	const tags = 100_000
	store := ownNames{memory.New()}
	for i := range tags {
		store.Put(segment.Row{Tag: fmt.Sprintf("business.line-%06d", i), MaxID: 1, Step: 1000})
	}
	router, err := segment.NewRouter([]segment.NamedStore{{Name: "default", Store: store}}, nil)
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		dir, err := datadir.Open(b.TempDir())
		if err != nil {
			b.Fatal(err)
		}
		b.StopTimer()
		before := heap()
		b.StartTimer()
		alloc, err := segment.New(router, dir, segment.Config{NodeID: dir.NodeID()})
		if err != nil {
			b.Fatal(err)
		}
		if err := alloc.Start(b.Context()); err != nil {
			b.Fatal(err)
		}
		b.StopTimer()
		if got := alloc.Status(); !got.Ready || got.Tags != tags {
			b.Fatalf("status %+v", got)
		}
		b.ReportMetric(float64(heap()-before)/tags, "B/idle-tag")
		if err := alloc.Close(context.Background()); err != nil {
			b.Fatal(err)
		}
		if err := dir.Close(); err != nil {
			b.Fatal(err)
		}
		b.StartTimer()
	}
}

// ownNames hands out rows whose names are freshly allocated, as a database driver
// does, so that they count as memory of the tag.
type ownNames struct{ *memory.Store }

func (s ownNames) Rows(ctx context.Context) ([]segment.Row, error) {
	rows, err := s.Store.Rows(ctx)
	for i := range rows {
		rows[i].Tag = strings.Clone(rows[i].Tag)
	}
	return rows, err
}

func heap() uint64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}
