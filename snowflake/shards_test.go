package snowflake_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/leaf-idgen/leaf/internal/test/long"
	"github.com/leaf-idgen/leaf/snowflake"
)

// TestShards: the IDs of a quiet service fill 256 and 1,024 shards evenly by id % n: no shard is
// empty, and the fullest has little more than its share. That holds for one ID per unit and for
// slower services, for one node and for several. A layout whose units have fewer than four times
// n numbers fills a part of n shards only: docs/SNOWFLAKE.md says so.
func TestShards(t *testing.T) {
	long.Plain(t)
	ten, err := snowflake.ParseLayout("unit=10ms,time=36,worker=5,sequence=12")
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range []snowflake.Layout{snowflake.Leaf(), snowflake.Seconds(), ten} {
		for _, workers := range [][]int64{{0}, {7}, {0, 1, 2, 31}} {
			for _, every := range []int{1, 1000} {
				for _, shards := range []int64{256, 1024} {
					t.Run(fmt.Sprintf("%s workers %v every %d n %d", l.Fingerprint(), workers, every, shards), func(t *testing.T) {
						const share = 40
						counts := make([]float64, shards)
						rnd := rand.New(rand.NewPCG(5, 6))
						for _, w := range workers {
							clk := newClock(start)
							c := clk.config(l)
							c.Worker, c.Rand = w, rnd.Uint64
							g := generator(t, c)
							for range share * int(shards) / len(workers) {
								counts[next(t, g)%shards]++
								clk.step(time.Duration(every) * l.Unit)
							}
						}
						// Chance leaves about 1 in 10,000 shards beyond 1.6 times its share, none beyond 1.85.
						if fullest := slices.Max(counts) / share; fullest > 1.85 || slices.Min(counts) == 0 {
							t.Errorf("the fullest shard has %.2f times its share, the emptiest %.2f", fullest, slices.Min(counts)/share)
						}
					})
				}
			}
		}
	}
}

// TestStartOfABatch: a large batch that begins a unit finds all it needs there, and batches that
// leave a choice begin anywhere.
func TestStartOfABatch(t *testing.T) {
	for _, n := range []int{257, 1000, 1024, 1025, 1500, 2047, 2048} {
		clk := newClock(start)
		g := generator(t, clk.config(snowflake.Leaf()))
		starts := map[int64]bool{}
		for range 100 {
			ranges, err := g.NextN(t.Context(), n)
			if err != nil || len(ranges) != 1 {
				t.Fatalf("%d IDs: %v, %v", n, ranges, err)
			}
			starts[decode(t, g, ranges[0].Lo).Sequence] = true
			clk.step(2 * time.Millisecond)
		}
		if most := min(1024, 2048-n+1); len(starts) > most || len(starts) < min(most, 50) {
			t.Errorf("%d IDs: %d starts of %d", n, len(starts), most)
		}
	}
}
