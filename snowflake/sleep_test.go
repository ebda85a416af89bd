package snowflake_test

import (
	"context"
	"os"
	"os/exec"
	"runtime"
	"runtime/pprof"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leaf-idgen/leaf/snowflake"
)

// TestSleepIsPrecise: a wait of 200 µs is over well before the 1 ms that a timer
// takes at the least, else the ceiling of a 1 ms unit is out of reach.
func TestSleepIsPrecise(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("timers only here")
	}
	over, cancel := context.WithCancel(t.Context())
	cancel()
	sleep := snowflake.NewSleep()
	best := func(ctx context.Context, d time.Duration) time.Duration {
		best := time.Hour
		for range 30 {
			begin := time.Now()
			if err := sleep(ctx, d); err == nil && time.Since(begin) < d {
				t.Fatalf("slept %v only", time.Since(begin))
			}
			best = min(best, time.Since(begin))
		}
		return best
	}
	best(t.Context(), time.Microsecond) // the first waits must not spoil the later ones
	if d := best(t.Context(), 200*time.Microsecond); d > 900*time.Microsecond {
		t.Errorf("at best %v for 200µs", d)
	}
	if d := best(over, 1900*time.Microsecond); d > 900*time.Microsecond {
		t.Errorf("at best %v with a context that is over", d)
	}
}

// TestSleepHonoursContext: a context that is over ends a wait before it begins, one
// that ends later ends a long wait early.
func TestSleepHonoursContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sleep := snowflake.NewSleep()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		begin := time.Now()
		if err := sleep(ctx, time.Hour); err == nil || time.Since(begin) != time.Second {
			t.Errorf("error %v after %v, want one after 1s", err, time.Since(begin))
		}
		for _, d := range []time.Duration{time.Microsecond, time.Hour} {
			if err := sleep(ctx, d); err == nil || time.Since(begin) != time.Second {
				t.Errorf("error %v after %v with a context that is over", err, time.Since(begin))
			}
		}
		if err := sleep(t.Context(), time.Millisecond); err != nil || time.Since(begin) != time.Second+time.Millisecond {
			t.Errorf("error %v after %v, want 1ms more", err, time.Since(begin))
		}
	})
}

// TestBubble: the default clock and the default sleep work in a synctest bubble, so
// that programs which embed a generator can be tested in one.
func TestBubble(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := snowflake.Layout{Unit: time.Millisecond, TimeBits: 41, WorkerBits: 1, SequenceBits: 4}
		g := generator(t, snowflake.Config{Layout: l, Bound: snowflake.NoBound})
		begin := time.Now()
		var all sync.WaitGroup
		for range 20 {
			all.Go(func() {
				for range 16 {
					if _, err := g.Next(t.Context()); err != nil {
						t.Error(err)
						return
					}
				}
			})
		}
		all.Wait()
		if d := time.Since(begin); d < 19*time.Millisecond || d > 21*time.Millisecond {
			t.Errorf("20 units took %v", d)
		}
	})
}

// TestWaitersCostNoThreads: any number of goroutines may wait for the next
// millisecond at once; a thread for each would end the process at 10,000. Threads
// stay for good and are used again, so the count needs a process of its own.
func TestWaitersCostNoThreads(t *testing.T) {
	const child = "LEAF_TEST_THREADS"
	if os.Getenv(child) == "" {
		c := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestWaitersCostNoThreads$")
		c.Env = append(os.Environ(), child+"=1")
		if out, err := c.CombinedOutput(); err != nil {
			t.Errorf("%v: %s", err, out)
		}
		return
	}
	sleep := snowflake.NewSleep()
	threads := pprof.Lookup("threadcreate")
	before := threads.Count()
	var all sync.WaitGroup
	for range 500 {
		all.Go(func() {
			for range 10 {
				if err := sleep(t.Context(), 1900*time.Microsecond); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	if n := threads.Count() - before; n > 30 {
		t.Errorf("%d new threads for 500 waiters", n)
	}
}
