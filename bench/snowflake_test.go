package bench_test

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	bwmarrin "github.com/bwmarrin/snowflake"

	"github.com/leaf-idgen/leaf/snowflake"
)

// wide has so many numbers per millisecond (4,194,304) that nobody waits for the
// next one: what is measured is the cost of an ID, not the ceiling of the layout.
var wide = snowflake.Layout{Epoch: snowflake.LeafEpoch, Unit: time.Millisecond, TimeBits: 40, WorkerBits: 1, SequenceBits: 22}

// BenchmarkSnowflake sets Next beside what it is made of, and beside another
// library, all in one run, on 1, 2 and 64 goroutines. "clock+CAS" is the least
// that a generator with one word can do: read the clock, swap a word, and again if
// somebody else was faster.
func BenchmarkSnowflake(b *testing.B) {
	ctx := context.Background()

	g, err := snowflake.New(snowflake.Config{Layout: wide, Bound: snowflake.NoBound})
	if err != nil {
		b.Fatal(err)
	}
	onGoroutines(b, "Next", func(pb *testing.PB) {
		for pb.Next() {
			if _, err := g.Next(ctx); err != nil {
				panic(err)
			}
		}
	})

	onGoroutines(b, "time.Now", func(pb *testing.PB) {
		for pb.Next() {
			_ = time.Now().UnixMilli()
		}
	})

	var added atomic.Uint64
	onGoroutines(b, "add", func(pb *testing.PB) {
		for pb.Next() {
			added.Add(1)
		}
	})

	var word atomic.Uint64
	onGoroutines(b, "clock+CAS", func(pb *testing.PB) {
		for pb.Next() {
			for {
				w := word.Load()
				next := w + 1
				if ms := uint64(time.Now().UnixMilli()); ms > w>>22 {
					next = ms << 22
				}
				if word.CompareAndSwap(w, next) {
					break
				}
			}
		}
	})

	// bwmarrin takes at most 22 bits of node and sequence together, by variables of
	// its package.
	bwmarrin.NodeBits, bwmarrin.StepBits = 0, 22
	node, err := bwmarrin.NewNode(0)
	if err != nil {
		b.Fatal(err)
	}
	onGoroutines(b, "bwmarrin", func(pb *testing.PB) {
		for pb.Next() {
			_ = node.Generate()
		}
	})
}

// BenchmarkSnowflakeCeiling is Next in the layout of the original: 4,096 IDs per
// millisecond are 244 ns per ID, of which all but the price of an ID is sleep.
func BenchmarkSnowflakeCeiling(b *testing.B) {
	ctx := context.Background()
	g, err := snowflake.New(snowflake.Config{Layout: snowflake.Leaf(), Bound: snowflake.NoBound})
	if err != nil {
		b.Fatal(err)
	}
	onGoroutines(b, "Next", func(pb *testing.PB) {
		for pb.Next() {
			if _, err := g.Next(ctx); err != nil {
				panic(err)
			}
		}
	})
}

// BenchmarkSinglesBesideBatches is the latency of single calls beside 4 callers of
// 100,000 IDs each: batches must leave singles room in every millisecond.
func BenchmarkSinglesBesideBatches(b *testing.B) {
	ctx, cancel := context.WithCancel(context.Background())
	g, err := snowflake.New(snowflake.Config{Layout: snowflake.Leaf(), Bound: snowflake.NoBound})
	if err != nil {
		b.Fatal(err)
	}
	var callers sync.WaitGroup
	var batches atomic.Int64
	for range 4 {
		callers.Go(func() {
			for ctx.Err() == nil {
				if _, err := g.NextN(ctx, snowflake.MaxBatch); err == nil {
					batches.Add(1)
				}
			}
		})
	}
	var took []time.Duration
	begin := time.Now()
	for b.Loop() {
		sent := time.Now()
		if _, err := g.Next(ctx); err != nil {
			b.Fatal(err)
		}
		took = append(took, time.Since(sent))
		time.Sleep(100 * time.Microsecond) // arrivals are not a reaction to replies
	}
	b.ReportMetric(float64(batches.Load())/time.Since(begin).Seconds(), "batches/s")
	cancel()
	callers.Wait()
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)/2].Microseconds()), "p50-µs")
	b.ReportMetric(float64(took[len(took)*99/100].Microseconds()), "p99-µs")
}

// onGoroutines runs body on 1, 2 and 64 goroutines, the latter ones on as many
// processors as there are. The figure is the time per operation of all together.
func onGoroutines(b *testing.B, name string, body func(*testing.PB)) {
	b.Helper()
	for _, n := range []int{1, 2, 64} {
		b.Run(fmt.Sprintf("%s/goroutines=%d", name, n), func(b *testing.B) {
			b.ReportAllocs()
			if n == 1 {
				defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
			}
			b.SetParallelism(max(1, n/runtime.GOMAXPROCS(0)))
			b.RunParallel(body)
		})
	}
}
