package segment_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leaf-idgen/leaf/internal/test/long"
	"github.com/leaf-idgen/leaf/segment"
)

// TestRefillsInFront: more refills than the store can do stand in front, and nobody takes
// them back. Callers of other tags are served all the same, though not each of them.
func TestRefillsInFront(t *testing.T) {
	long.Plain(t)
	const hot, rare = 60, 10
	synctest.Test(t, func(t *testing.T) {
		s := newStore()
		for i := range hot {
			s.Put(segment.Row{Tag: fmt.Sprint("hot", i), MaxID: 1, Step: 2})
		}
		for i := range rare {
			s.Put(segment.Row{Tag: fmt.Sprint("rare", i), MaxID: 1, Step: 1000})
		}
		a := node(t, s, nil, segment.Config{MaxLoads: 1, MaxWait: time.Second, SyncInterval: time.Hour, FixedStep: true})
		for i := range hot {
			next(t, a, fmt.Sprint("hot", i))
		}
		s.set(func(st *store) {
			st.onReserve = func(_ context.Context, _ segment.Request, do func() (segment.Reservation, error)) (segment.Reservation, error) {
				time.Sleep(100 * time.Millisecond)
				return do()
			}
		})
		ctx, stop := context.WithCancel(t.Context())
		var callers sync.WaitGroup
		repeat := func(tag string, first, pause time.Duration, ended func(error)) {
			callers.Go(func() {
				for time.Sleep(first); ctx.Err() == nil; time.Sleep(pause + rand.N(pause/2)) {
					_, err := a.Next(t.Context(), tag)
					ended(err)
				}
			})
		}
		for i := range hot {
			repeat(fmt.Sprint("hot", i), time.Duration(i)*11*time.Millisecond, 300*time.Millisecond, func(error) {})
		}
		var mu sync.Mutex
		var served, inVain int
		for i := range rare {
			repeat(fmt.Sprint("rare", i), 20*time.Second+time.Duration(i)*37*time.Millisecond, 4*time.Second, func(err error) {
				mu.Lock()
				defer mu.Unlock()
				if err == nil {
					served++
				} else {
					inVain++
				}
			})
		}
		time.Sleep(2 * time.Minute)
		stop()
		callers.Wait()
		if 2*served < inVain {
			t.Errorf("%d calls for rare tags were served and %d were in vain; want at least a third of them served", served, inVain)
		}
		t.Logf("%d calls for rare tags were served, %d in vain", served, inVain)
	})
}

// TestOldestProbes: while the store is down each tag is tried in turn, also if the newest
// goes first otherwise. A tag that fails by itself, and is the newest after each attempt,
// would keep the store from being seen to be back.
func TestOldestProbes(t *testing.T) {
	tags := []string{"b", "c", "d", "e"}
	synctest.Test(t, func(t *testing.T) {
		s := newStore(segment.Row{Tag: "busy", MaxID: 1, Step: 10}, segment.Row{Tag: "a", MaxID: 1, Step: 10})
		release := make(chan struct{})
		asked := map[string]int{} // guarded by store.mu
		s.set(func(st *store) {
			st.onReserve = func(_ context.Context, r segment.Request, _ func() (segment.Reservation, error)) (segment.Reservation, error) {
				st.mu.Lock()
				asked[r.Tag]++
				st.mu.Unlock()
				<-release
				return segment.Reservation{}, errDown
			}
		})
		a := node(t, s, nil, segment.Config{MaxLoads: 1, MaxWait: time.Minute, SyncInterval: time.Hour, FixedStep: true})
		for _, tag := range append([]string{"a"}, tags...) {
			s.Put(segment.Row{Tag: tag, MaxID: 1, Step: 10})
			if err := a.Refresh(t.Context(), tag); err != nil {
				t.Fatal(err)
			}
		}
		call(t, a, "busy")
		leave, _ := call(t, a, "a")
		for _, tag := range tags {
			call(t, a, tag)
		}
		leave() // the oldest: from now on the newest goes first
		close(release)
		time.Sleep(50 * time.Second) // the probes come at random, at least 4 in a second
		s.mu.Lock()
		defer s.mu.Unlock()
		for _, tag := range tags {
			if asked[tag] < 5 {
				t.Errorf("in 50 s the store was asked for %s %d times; want in turn: %v", tag, asked[tag], asked)
			}
		}
	})
}

// TestCallersAmongThePreloaded: after a start, ranges of many recent tags are loaded ahead of need, and no caller takes
// these loads back. A tag that is asked for meanwhile does not wait for all of them.
func TestCallersAmongThePreloaded(t *testing.T) {
	const tags, took = 400, 50 * time.Millisecond
	synctest.Test(t, func(t *testing.T) {
		s, d := newStore(), newDisk()
		name := func(i int) string { return fmt.Sprintf("tag%03d", i) }
		for i := range tags {
			s.Put(segment.Row{Tag: name(i), MaxID: 1, Step: 1000})
		}
		before := node(t, s, d, segment.Config{})
		for i := range tags {
			next(t, before, name(i))
		}
		closeNode(t, before)
		s.set(func(st *store) {
			st.onReserve = func(_ context.Context, _ segment.Request, do func() (segment.Reservation, error)) (segment.Reservation, error) {
				time.Sleep(took)
				return do()
			}
		})
		a := node(t, s, d, segment.Config{MaxLoads: 1, MaxWait: time.Second})
		asked := time.Now()
		for _, i := range []int{tags - 1, tags / 2} {
			for {
				if _, err := a.Next(t.Context(), name(i)); err == nil {
					break
				}
			}
		}
		if waited := time.Since(asked); waited > 3*time.Second {
			t.Errorf("two tags that are asked for wait %v behind %d that are not", waited, tags)
		}
	})
}
