package bench_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/leaf-idgen/leaf/driver/datadir"
	"github.com/leaf-idgen/leaf/driver/memory"
	"github.com/leaf-idgen/leaf/driver/sqldb"
	"github.com/leaf-idgen/leaf/internal/meter"
	"github.com/leaf-idgen/leaf/internal/test/server"
	"github.com/leaf-idgen/leaf/segment"
)

const manyTags = 100_000

func manyTag(i int) string { return fmt.Sprintf("business.line-%06d", i) }

// BenchmarkManyTags starts a node with 100,000 tags and reports the time until it
// is ready and the memory that an idle tag keeps.
func BenchmarkManyTags(b *testing.B) {
	b.Run("memory", func(b *testing.B) {
		store := ownNames{memory.New()}
		for i := range manyTags {
			store.Put(segment.Row{Tag: manyTag(i), MaxID: 1, Step: 1000})
		}
		startMany(b, store)
	})
	b.Run("MariaDB", func(b *testing.B) {
		database := server.MariaDB(b)
		store, err := sqldb.Open(database.URL(), sqldb.Config{})
		if err != nil {
			b.Fatal(err)
		}
		b.Cleanup(func() { _ = store.Close() })
		if _, err := store.ApplySchema(b.Context()); err != nil {
			b.Fatal(err)
		}
		db := database.Open(b)
		for i := 0; i < manyTags; i += 1000 {
			values := make([]string, 1000)
			for j := range values {
				values[j] = fmt.Sprintf("('%s', 1, 1000)", manyTag(i+j))
			}
			if _, err := db.ExecContext(b.Context(), "INSERT INTO leaf_alloc (biz_tag, max_id, step) VALUES "+strings.Join(values, ",")); err != nil {
				b.Fatal(err)
			}
		}
		startMany(b, store)
	})
}

func startMany(b *testing.B, store segment.Store) {
	b.Helper()
	router, err := segment.NewRouter([]segment.NamedStore{{Name: "default", Store: store}}, nil)
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		b.StopTimer()
		dir, err := datadir.Open(b.TempDir())
		if err != nil {
			b.Fatal(err)
		}
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
		if got := alloc.Status(); !got.Ready || got.Tags != manyTags {
			b.Fatalf("status %+v", got)
		}
		b.ReportMetric(float64(heap()-before)/manyTags, "B/idle-tag")
		if err := alloc.Close(context.Background()); err != nil {
			b.Fatal(err)
		}
		if err := dir.Close(); err != nil {
			b.Fatal(err)
		}
		b.StartTimer()
	}
}

// BenchmarkMetricsOfManyTags is what a scrape of /metrics costs for each tag in use. It has a tenth
// of the tags, because each of them needs a range first.
func BenchmarkMetricsOfManyTags(b *testing.B) {
	const used = manyTags / 10
	store := memory.New()
	for i := range used {
		store.Put(segment.Row{Tag: manyTag(i), MaxID: 1, Step: 1000})
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
	var all sync.WaitGroup
	for part := range 64 {
		all.Go(func() {
			for i := part; i < used; i += 64 {
				if _, err := alloc.Next(b.Context(), manyTag(i)); err != nil {
					b.Error(err)
				}
			}
		})
	}
	all.Wait()
	tags := meter.NewTags(50)
	b.ReportAllocs()
	for b.Loop() {
		if named, rest := tags.Look(time.Now(), alloc.Usages()); len(named) != 50 || rest.Tags != used-50 {
			b.Fatalf("%d tags are named, and %d are not", len(named), rest.Tags)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/used, "ns/tag")
	if err := errors.Join(alloc.Close(context.Background()), dir.Close()); err != nil {
		b.Fatal(err)
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
