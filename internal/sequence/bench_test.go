package sequence_test

import (
	"context"
	"runtime"
	"sync"
	"testing"

	"github.com/leaf-idgen/leaf/driver/memory"
	"github.com/leaf-idgen/leaf/internal/sequence"
)

// many is how many entities the benchmarks have.
const many = 10_000_000

func heap() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// fill makes n entities resident, and returns the node and the bytes of memory that each costs.
func fill(tb testing.TB, n int) (*sequence.Positions, float64) {
	tb.Helper()
	before := heap()
	_, a := one(tb, sequence.Config{MaxResident: 2 * n})
	requests := make([]sequence.Request, 0, sequence.MaxRequests)
	for i := range n {
		requests = append(requests, sequence.Request{Entity: sequence.Number(uint64(i)), Count: 1})
		if len(requests) < cap(requests) && i < n-1 {
			continue
		}
		results, err := a.NextEach(context.Background(), requests)
		if err != nil || results[0].Err != nil {
			tb.Fatal(err, results[0].Err)
		}
		requests = requests[:0]
	}
	if got := a.Status().Resident; got != n {
		tb.Fatalf("%d entities in memory, want %d", got, n)
	}
	return a, float64(heap()-before) / float64(n)
}

// A position costs at most 16 bytes, wherever the tables of the sections are in their growth.
func TestBytesOfAnEntity(t *testing.T) {
	const sections = 6
	_, a := one(t, sequence.Config{MaxResident: many})
	before := heap()
	for i, n := uint64(0), 0; n < 9500*sections; i++ {
		e := sequence.Number(i)
		if e.Section() >= sections {
			continue
		}
		next(t, a, e)
		if n++; n > 4000*sections && n%(200*sections) == 0 {
			if bytes := float64(heap()-before) / float64(n); bytes > 16 {
				t.Errorf("%d entities: %.2f bytes each, want at most 16", n, bytes)
			}
		}
	}
	runtime.KeepAlive(a)
}

var filled = sync.OnceValues(func() (*sequence.Positions, float64) { return fill(&testing.B{}, many) })

func scattered(i int) sequence.Entity { return sequence.Number(uint64(i) * 7919 % many) }

func BenchmarkNext(b *testing.B) {
	a, bytes := filled()
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		if _, err := a.Next(context.Background(), scattered(i)); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(bytes, "bytes/entity")
}

func BenchmarkNextParallel(b *testing.B) {
	a, _ := filled()
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		for i := 0; pb.Next(); i++ {
			if _, err := a.Next(context.Background(), scattered(i)); err != nil {
				b.Error(err)
				return
			}
		}
	})
}

// BenchmarkNextEach is batches of 1,000 entities; ns/op is of one increment.
func BenchmarkNextEach(b *testing.B) {
	a, _ := filled()
	b.ReportAllocs()
	const size = 1000
	requests := make([]sequence.Request, size)
	for i := 0; i < b.N; i += size {
		for j := range requests {
			requests[j] = sequence.Request{Entity: scattered(i + j), Count: 1}
		}
		results, err := a.NextEach(context.Background(), requests)
		if err != nil || results[0].Err != nil {
			b.Fatal(err, results[0].Err)
		}
	}
}

// BenchmarkNew is entities that come for the first time, with all growth of the tables.
func BenchmarkNew(b *testing.B) {
	_, a := one(b, sequence.Config{MaxResident: sequence.MostResident})
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		if _, err := a.Next(context.Background(), sequence.Number(uint64(i))); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkEvict is new entities in full sections.
func BenchmarkEvict(b *testing.B) {
	_, a := one(b, sequence.Config{MaxResident: 1_000_000})
	i := 0
	for ; i < 1_100_000; i++ {
		next(b, a, sequence.Number(uint64(i)))
	}
	b.ReportAllocs()
	for ; b.Loop(); i++ {
		if _, err := a.Next(context.Background(), sequence.Number(uint64(i))); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkRestart is a node that begins with nothing in memory, until each section has answered: with rows of segment
// mode in a store in memory, so without the time of a database.
func BenchmarkRestart(b *testing.B) {
	store := memory.New()
	for section := range sequence.Sections {
		putRow(store, section, 1)
	}
	requests := make([]sequence.Request, sequence.MaxRequests)
	for i := range requests {
		requests[i] = sequence.Request{Entity: scattered(i), Count: 1}
	}
	for b.Loop() {
		a := stored(b, store, "a", always{}, 10)
		results, err := a.NextEach(context.Background(), requests)
		if err != nil {
			b.Fatal(err)
		}
		for _, r := range results {
			if r.Err != nil {
				b.Fatal(r.Err)
			}
		}
	}
}
