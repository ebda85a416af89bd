package limit_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/internal/limit"
	"github.com/leaf-idgen/leaf/internal/test/long"
	"github.com/leaf-idgen/leaf/snowflake"
)

// generator is snowflake mode without a registry.
type generator struct{ *snowflake.Generator }

func (g generator) Next(ctx context.Context, _ string) (int64, error) { return g.Generator.Next(ctx) }

func (g generator) NextN(ctx context.Context, _ string, n int) (all []leaf.Range, err error) {
	runs, err := g.Generator.NextN(ctx, n)
	for _, r := range runs {
		all = append(all, leaf.Range{Lo: r.Lo, Hi: r.Hi})
	}
	return all, err
}

// TestOverloadOfSnowflakeMode: a millisecond has 4,096 IDs, and five times as many are
// asked for, in batches. What is rejected must not take IDs from the others.
func TestOverloadOfSnowflakeMode(t *testing.T) {
	long.Plain(t)
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(25 * 365 * 24 * time.Hour) // the layout begins later than the clock of a bubble
		inner, err := snowflake.New(snowflake.Config{Layout: snowflake.Leaf(), Bound: time.Now().Add(time.Hour).UnixMilli(), Admit: leaf.Admit})
		if err != nil {
			t.Fatal(err)
		}
		g := newGate(t, limit.Config{TargetWait: 25 * time.Millisecond}, leaf.Disabled("segment"), generator{inner})
		i := open(t, g, leaf.Credentials{}).Snowflake
		const batch, perTick, warmUp, measured = 2048, 10, 150, 100 // 10 batches a millisecond
		var mu sync.Mutex
		got, waiting, most := 0, 0, 0
		var slowest time.Duration
		var clients sync.WaitGroup
		working, stop := context.WithCancel(t.Context())
		defer stop()
		begin := time.Now()
		for range warmUp + measured {
			for range perTick {
				clients.Go(func() {
					mu.Lock()
					waiting++
					most = max(most, waiting)
					mu.Unlock()
					start := time.Now()
					ctx, cancel := context.WithTimeout(working, time.Second)
					defer cancel()
					_, err := i.NextN(ctx, "", batch)
					mu.Lock()
					defer mu.Unlock()
					waiting--
					end := time.Since(begin)
					switch {
					case working.Err() != nil: // came too late to be measured
					case err != nil && !errors.Is(err, leaf.ErrExhausted):
						t.Error(err)
					case err == nil && end >= warmUp*time.Millisecond && end < (warmUp+measured)*time.Millisecond:
						got += batch
						slowest = max(slowest, time.Since(start))
					}
				})
			}
			time.Sleep(time.Millisecond)
		}
		stop()
		clients.Wait()
		capacity := 4096 / 2 * measured // the other half is for single IDs
		if got < capacity*85/100 {
			t.Errorf("%d IDs in %d ms; want at least 85 %% of the capacity of %d", got, measured, capacity)
		}
		if slowest > 600*time.Millisecond || most > 1000 {
			t.Errorf("slowest batch %v, %d requests at once", slowest, most)
		}
		t.Logf("%d IDs in %d ms, slowest %v, %d at once, %+v", got, measured, slowest, most, g.Status().Snowflake)
	})
}
