package segment_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/segment"
)

// TestBatchLeavesTheStock: a batch larger than what is in memory takes nothing while no
// load succeeds, so that an outage is ridden out by the calls that the stock can serve.
func TestBatchLeavesTheStock(t *testing.T) {
	down := func(s *store) { s.breakDown() }
	hang := func(s *store) {
		s.set(func(s *store) {
			s.onReserve = func(ctx context.Context, _ segment.Request, _ func() (segment.Reservation, error)) (segment.Reservation, error) {
				<-ctx.Done()
				return segment.Reservation{}, ctx.Err()
			}
		})
	}
	for _, c := range []struct {
		name  string
		used  int // IDs taken before, of ranges of 1000
		fail  func(*store)
		batch int
		left  int
	}{
		{"one range in memory", 3, down, 5000, 997},
		{"one range, a load that hangs", 3, hang, 5000, 997},
		{"two ranges in memory", 150, down, 5000, 1850},
		{"a batch of one more", 150, down, 1851, 1850},
		{"a batch of all", 150, down, 1850, 0},
		{"a batch of two chunks", 150, down, 120, 1730},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newStore(row(1000))
				a := node(t, s, nil, segment.Config{FixedStep: true, MaxWait: time.Second, LoadTimeout: 5 * time.Second})
				drain(t, a, "order", c.used)
				synctest.Wait()
				c.fail(s)
				for range 3 {
					got, err := a.NextN(t.Context(), "order", c.batch)
					if err == nil {
						if n := total(got); n != int64(c.batch) || c.used+c.batch+c.left > 2000 {
							t.Fatalf("a batch of %d got %v", c.batch, got)
						}
						break
					}
					wantErr(t, err, leaf.ErrExhausted)
					if got != nil {
						t.Fatalf("an error and %v", got)
					}
				}
				for range c.left {
					next(t, a, "order")
				}
				_, err := a.Next(t.Context(), "order")
				wantErr(t, err, leaf.ErrExhausted)
			})
		})
	}
}

func total(ranges []leaf.Range) (n int64) {
	for _, r := range ranges {
		n += r.Len()
	}
	return n
}

// TestBatchAfterAnOutage gets all that it wants once loads succeed, with as many ranges
// as it takes.
func TestBatchAfterAnOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStore(row(100))
		a := node(t, s, nil, segment.Config{FixedStep: true, MaxWait: 10 * time.Second})
		drain(t, a, "order", 15) // two ranges in memory
		synctest.Wait()
		s.breakDown()
		time.AfterFunc(3*time.Second, s.heal)
		got, err := a.NextN(t.Context(), "order", 5000)
		if err != nil || total(got) != 5000 || len(got) != 1 || got[0].Lo != 16 {
			t.Fatalf("NextN = %v, %v; want [16, 5016)", got, err)
		}
		if id := next(t, a, "order"); id != 5016 {
			t.Errorf("ID = %d, want 5016", id)
		}
	})
}

// TestBatchWithThreeRangesInMemory makes room: the load for a batch whose caller left
// came too late, and the next batch must neither spin nor wait for a load that has no
// place.
func TestBatchWithThreeRangesInMemory(t *testing.T) {
	for _, used := range []int{15, 100} { // of the first range, which 100 use up
		synctest.Test(t, func(t *testing.T) {
			s := newStore(row(100))
			a := node(t, s, nil, segment.Config{FixedStep: true, MaxWait: time.Second, LoadTimeout: time.Minute})
			drain(t, a, "order", 15)
			synctest.Wait()
			stuck, release := stuckOnce(s, nil)
			_, err := a.NextN(t.Context(), "order", 1000)
			wantErr(t, err, leaf.ErrExhausted)
			<-stuck
			close(release)
			synctest.Wait() // [1, 301) is in memory
			drain(t, a, "order", used-15)
			got, err := a.NextN(t.Context(), "order", 1000)
			if err != nil || len(got) != 1 || got[0] != (leaf.Range{Lo: int64(used) + 1, Hi: int64(used) + 1001}) {
				t.Fatalf("after %d: NextN = %v, %v", used, got, err)
			}
		})
	}
}

// TestBatchesAndSinglesInOrder: whatever the mixture, one node issues each number once,
// in order, none is left out but by a batch that fails, and a clean stop returns exactly what was not issued.
func TestBatchesAndSinglesInOrder(t *testing.T) {
	for seed := range uint64(20) {
		synctest.Test(t, func(t *testing.T) {
			rng := rand.New(rand.NewPCG(seed, 8))
			s, d := newStore(row(1+rng.Int64N(60))), newDisk()
			want, lost := int64(1), int64(0) // lost: what a batch took that failed in the end, at most
			for range 3 {
				a := node(t, s, d, segment.Config{FixedStep: rng.IntN(2) == 0, MaxWait: 100 * time.Millisecond})
				for range 60 {
					n := 1
					if rng.IntN(2) == 0 {
						n = 1 + rng.IntN(150)
					}
					if rng.IntN(8) == 0 { // a call whose load comes too late for it
						s.set(func(s *store) {
							s.onReserve = func(_ context.Context, _ segment.Request, do func() (segment.Reservation, error)) (segment.Reservation, error) {
								time.Sleep(150 * time.Millisecond)
								return do()
							}
						})
					}
					got, err := a.NextN(t.Context(), "order", n)
					s.heal()
					if rng.IntN(2) == 0 {
						synctest.Wait()
					}
					if errors.Is(err, leaf.ErrExhausted) || errors.Is(err, leaf.ErrNotReady) {
						lost += int64(n - 1)
						time.Sleep(time.Second)
						continue
					}
					if err != nil || len(got) != 1 || got[0].Len() != int64(n) || got[0].Lo < want || got[0].Lo > want+lost {
						t.Fatalf("seed %d: NextN(%d) = %v, %v; want it from %d, or up to %d later", seed, n, got, err, want, lost)
					}
					want, lost = got[0].Hi, 0
				}
				synctest.Wait()
				closeNode(t, a)
				got := s.maxID(t, "order")
				if got < want || got > want+lost {
					t.Fatalf("seed %d: max_id = %d after a clean stop, want %d, or up to %d more", seed, got, want, lost)
				}
				want, lost = got, 0
			}
		})
	}
}
