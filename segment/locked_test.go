package segment_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/internal/test/long"
	"github.com/leaf-idgen/leaf/segment"
)

// locks returns a store in which another transaction has locked the rows of the tags "locked…":
// their loads hang to the deadline. Every second load of a tag "hot…" does the same. Other loads
// take 5 ms.
func locks(maxStep int64, tags ...string) *store {
	s := newStore()
	for _, tag := range tags {
		s.Put(segment.Row{Tag: tag, MaxID: 1, Step: maxStep})
	}
	var hot atomic.Int64
	s.onReserve = func(ctx context.Context, r segment.Request, do func() (segment.Reservation, error)) (segment.Reservation, error) {
		if strings.HasPrefix(r.Tag, "locked") || strings.HasPrefix(r.Tag, "hot") && hot.Add(1)%2 == 0 {
			<-ctx.Done()
			return segment.Reservation{}, ctx.Err()
		}
		time.Sleep(5 * time.Millisecond)
		return do()
	}
	return s
}

// callers call for IDs of the tags again and again, until the test ends.
func callers(t *testing.T, a *segment.Allocator, tags ...string) {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	var running sync.WaitGroup
	for _, tag := range tags {
		running.Go(func() {
			for ctx.Err() == nil {
				_, _ = a.Next(ctx, tag)
				_ = leaf.SystemRuntime().Wait(ctx, nil, 20*time.Millisecond)
			}
		})
	}
	t.Cleanup(func() { stop(); running.Wait() })
}

func names(prefix string, n int) (tags []string) {
	for i := range n {
		tags = append(tags, fmt.Sprint(prefix, i))
	}
	return tags
}

// TestLockedRowsBesideOthers: many more rows are locked than loads may run. Each may hold up
// other tags with its first load. From then on every call for another tag is served. When the
// rows are free, their tags are served again.
func TestLockedRowsBesideOthers(t *testing.T) {
	long.Plain(t)
	for _, tt := range []struct{ locked, hot, maxLoads int }{{20, 0, 16}, {50, 0, 16}, {50, 6, 16}, {50, 0, 4}, {5, 0, 2}} {
		t.Run(fmt.Sprintf("%d locked, %d at times, %d slots", tt.locked, tt.hot, tt.maxLoads), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				locked, hot, free := names("locked", tt.locked), names("hot", tt.hot), names("free", 10)
				s := locks(2, append(append(free, locked...), hot...)...)
				a := node(t, s, nil, segment.Config{MaxLoads: tt.maxLoads, MaxWait: time.Second, FixedStep: true})
				callers(t, a, append(locked, hot...)...)
				time.Sleep(time.Duration(tt.locked/tt.maxLoads+5) * 4 * time.Second)
				refused := 0
				for range 100 {
					for _, tag := range free {
						if _, err := a.Next(t.Context(), tag); err != nil {
							refused++
						}
					}
					time.Sleep(100 * time.Millisecond)
				}
				if refused > 0 {
					t.Errorf("%d of 1,000 calls for tags whose rows are free were refused", refused)
				}
				if st := a.Status(); !st.Ready {
					t.Errorf("not ready: %q", st.Reasons)
				}
				s.heal()
				time.Sleep(3 * time.Second)
				for _, tag := range locked {
					next(t, a, tag)
				}
			})
		})
	}
}

// once makes the first load of a tag that s serves take too long.
func once(s *store, tag string) {
	hang, first := s.onReserve, true // one load of a tag runs at a time
	s.onReserve = func(ctx context.Context, r segment.Request, do func() (segment.Reservation, error)) (segment.Reservation, error) {
		if r.Tag == tag && first {
			first = false
			<-ctx.Done()
			return segment.Reservation{}, ctx.Err()
		}
		return hang(ctx, r, do)
	}
}

// TestLockedRowsTakeTurns: a row that is free again gets its turn although the callers of 50
// tags with locked rows come again and again, and although its own callers are many.
func TestLockedRowsTakeTurns(t *testing.T) {
	long.Plain(t)
	synctest.Test(t, func(t *testing.T) {
		locked := names("locked", 50)
		s := locks(1000, append(locked, "z")...)
		once(s, "z")
		a := node(t, s, nil, segment.Config{MaxWait: time.Second, FixedStep: true})
		callers(t, a, locked...)
		time.Sleep(20 * time.Second)
		for range 50 {
			callers(t, a, "z")
			time.Sleep(20 * time.Millisecond)
		}
		time.Sleep(time.Minute)
		next(t, a, "z")
	})
}

// TestSlowTagBesideOverload: other tags want more loads than the database can do. A tag whose
// load took too long once is served all the same.
func TestSlowTagBesideOverload(t *testing.T) {
	long.Plain(t)
	synctest.Test(t, func(t *testing.T) {
		free := names("free", 40)
		s := locks(1, free...)
		s.Put(segment.Row{Tag: "a", MaxID: 1, Step: 1_000_000})
		once(s, "a")
		a := node(t, s, nil, segment.Config{MaxLoads: 2, MaxWait: time.Second, FixedStep: true})
		callers(t, a, append(free, "a")...)
		time.Sleep(20 * time.Second)
		next(t, a, "a")
	})
}

// TestLockedRowsOneSlot: with one slot a caller waits for one load of a locked row at most.
func TestLockedRowsOneSlot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		locked := names("locked", 10)
		a := node(t, locks(1, append(locked, "free")...), nil, segment.Config{MaxLoads: 1, MaxWait: 5 * time.Second, FixedStep: true})
		callers(t, a, locked...)
		time.Sleep(time.Minute)
		for range 10 {
			next(t, a, "free")
		}
	})
}

// TestEndOfAHang: every load of the database hangs, so the last load of every tag took too long.
// When the hang ends all tags are served about as fast as the slots allow.
func TestEndOfAHang(t *testing.T) {
	long.Plain(t)
	synctest.Test(t, func(t *testing.T) {
		locked := names("locked", 1000)
		s := locks(1000, locked...)
		a := node(t, s, nil, segment.Config{MaxWait: 10 * time.Second, FixedStep: true})
		callers(t, a, locked...)
		time.Sleep(3 * time.Minute)
		s.set(func(s *store) {
			s.onReserve = func(_ context.Context, _ segment.Request, do func() (segment.Reservation, error)) (segment.Reservation, error) {
				time.Sleep(20 * time.Millisecond)
				return do()
			}
		})
		began := time.Now()
		for _, tag := range locked {
			next(t, a, tag)
		}
		// 2 s for the loads that hang, and 1000 loads of 20 ms in 12 slots.
		if took := time.Since(began); took > 4*time.Second {
			t.Errorf("all tags are served after %v", took)
		}
	})
}
