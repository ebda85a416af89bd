package cache_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/client/cache"
)

// TestOrderAndFetches: one caller gets the source's numbers in order, and the fetches
// come in advance and grow with the demand.
func TestOrderAndFetches(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSource()
		c := open(t, s, cache.Config{Min: 10, Max: 100})
		for want := int64(1); want <= 200; want++ {
			if id := next(t, c, "a"); id != want {
				t.Fatalf("got %d, want %d", id, want)
			}
			synctest.Wait()
		}
		if got, want := s.asked(), []int{10, 10, 20, 40, 80, 100}; !slices.Equal(got, want) {
			t.Errorf("fetches of %v, want %v", got, want)
		}
		if st := c.Stats(); st.Fetched != 260 || st.Held != 60 || st.Fetches != 6 || st.Tags != 1 {
			t.Errorf("stats %+v", st)
		}
	})
}

// TestSizeFollowsTheDemand: a fetch that lasts long is followed by a smaller one.
func TestSizeFollowsTheDemand(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSource()
		c := open(t, s, cache.Config{Min: 4, Max: 64, Span: time.Second})
		for range 100 {
			next(t, c, "a")
			synctest.Wait()
		}
		before := len(s.asked())
		for range 400 {
			time.Sleep(time.Second)
			next(t, c, "a")
			synctest.Wait()
		}
		got := s.asked()
		if got[before-1] != 64 || got[len(got)-1] != 4 {
			t.Errorf("fetches of %v; want 64 while in a hurry, 4 in the end", got)
		}
	})
}

// TestManyCallersOneFetch: callers who find nothing wait for one fetch, and it brings one
// ID for each of them.
func TestManyCallersOneFetch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSource()
		release := make(chan struct{})
		s.set(func(_ context.Context, tag string, n int) ([]leaf.Range, error) {
			<-release
			return s.give(tag, n), nil
		})
		c := open(t, s, cache.Config{Min: 2})
		ids := collect(t, c, "a", 50, 1)
		synctest.Wait()
		close(release)
		wantDistinct(t, ids(), 50)
		if got := s.asked(); len(got) > 3 || got[0]+got[1] < 50 {
			t.Errorf("fetches of %v; want one for the first callers, one for all others, and at most one in advance", got)
		}
	})
}

// collect takes each IDs in each of many goroutines; the result waits for them.
func collect(t *testing.T, c leaf.Issuer, tag string, many, each int) func() []int64 {
	t.Helper()
	var mu sync.Mutex
	var all []int64
	var done sync.WaitGroup
	for range many {
		done.Go(func() {
			mine := make([]int64, 0, each)
			for range each {
				id, err := c.Next(t.Context(), tag)
				if err != nil {
					t.Error(err)
					return
				}
				mine = append(mine, id)
			}
			mu.Lock()
			defer mu.Unlock()
			all = append(all, mine...)
		})
	}
	return func() []int64 { done.Wait(); return all }
}

func wantDistinct(t *testing.T, ids []int64, n int) {
	t.Helper()
	if len(ids) != n {
		t.Errorf("%d IDs, want %d", len(ids), n)
	}
	slices.Sort(ids)
	for i := 1; i < len(ids); i++ {
		if ids[i] == ids[i-1] {
			t.Fatalf("ID %d twice", ids[i])
		}
	}
}

// TestStress: real goroutines on awkward sizes, singles and batches mixed, while every
// third fetch fails and ranges come in chunks; and what was not handed out is counted.
func TestStress(t *testing.T) {
	t.Parallel()
	s := newSource()
	var calls int
	s.set(func(_ context.Context, tag string, n int) ([]leaf.Range, error) {
		s.mu.Lock()
		calls++
		fail := calls%3 == 0
		s.mu.Unlock()
		if fail {
			return nil, leaf.ErrNotReady
		}
		first := s.give(tag, (n+1)/2)
		s.give(tag, 3) // somebody else's
		if n < 2 {
			return first, nil
		}
		return append(first, s.give(tag, n/2)...), nil
	})
	c := open(t, s, cache.Config{Min: 1, Max: 37, Span: time.Millisecond})
	var mu sync.Mutex
	var all []int64
	var done sync.WaitGroup
	for g := range 8 {
		done.Go(func() {
			var mine []int64
			for i := 0; len(mine) < 3000; i++ {
				if (g+i)%5 > 0 {
					if id, err := c.Next(t.Context(), "a"); err == nil {
						mine = append(mine, id)
					}
					continue
				}
				n := 1 + (g*7+i)%50
				ranges, err := c.NextN(t.Context(), "a", n)
				if err != nil {
					continue
				}
				got := int64(0)
				for k, r := range ranges {
					if k > 0 && r.Lo < ranges[k-1].Hi {
						t.Errorf("ranges %v do not grow", ranges)
					}
					got += r.Len()
					for id := r.Lo; id < r.Hi; id++ {
						mine = append(mine, id)
					}
				}
				if got != int64(n) {
					t.Errorf("%d IDs, want %d: %v", got, n, ranges)
				}
			}
			mu.Lock()
			defer mu.Unlock()
			all = append(all, mine...)
		})
	}
	done.Wait()
	wantDistinct(t, all, len(all))
}

// TestUnknownTagsCostNoMemory: names that the source does not know are forgotten.
func TestUnknownTagsCostNoMemory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSource()
		c := open(t, s, cache.Config{})
		s.set(func(_ context.Context, tag string, n int) ([]leaf.Range, error) {
			if tag != "known" {
				return nil, fmt.Errorf("%w: %q", leaf.ErrUnknownTag, tag)
			}
			return s.give(tag, n), nil
		})
		next(t, c, "known")
		for i := range 100 {
			if _, err := c.Next(t.Context(), fmt.Sprint(i)); !errors.Is(err, leaf.ErrUnknownTag) {
				t.Fatal(err)
			}
		}
		synctest.Wait()
		if st := c.Stats(); st.Tags != 1 {
			t.Errorf("%d tags in memory", st.Tags)
		}
	})
}

// TestLimitBelowTheSize: a limit that comes when fetches are large makes them smaller, so
// that callers get what it allows. So does a source that has not so many IDs any more.
func TestLimitBelowTheSize(t *testing.T) {
	for _, tt := range []struct {
		name    string
		refusal error
		never   bool // is it to be the error of a caller of one ID
	}{
		{"never so many", leaf.BadField("count", 100, "must be 1 to 7"), true},
		{"not so many now", leaf.Throttled("7 IDs", time.Hour), false},
		{"not so many left", leaf.ErrOverflow, true},
		{"not so many in time", leaf.ErrExhausted, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newSource()
				c := open(t, s, cache.Config{Min: 1, Max: 100})
				for range 500 { // in a hurry, so that fetches are of 100
					next(t, c, "a")
				}
				s.set(func(_ context.Context, tag string, n int) ([]leaf.Range, error) {
					if n > 7 {
						return nil, tt.refusal
					}
					return s.give(tag, n), nil
				})
				served := 0
				for range 300 {
					_, err := c.Next(t.Context(), "a")
					switch {
					case err == nil:
						served++
					case tt.never:
						t.Fatalf("a caller of one ID after %d: %v", served, err)
					}
					synctest.Wait()
				}
				if served < 290 {
					t.Errorf("%d of 300 calls served", served)
				}
			})
		})
	}
}

// TestCacheAfterAShortage: the source had not enough IDs in time for a moment, so fetches are as small as what callers want.
// When it has enough again, their calls are served from memory again.
func TestCacheAfterAShortage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSource()
		c := open(t, s, cache.Config{Min: 10})
		take := func() error { _, err := c.NextN(t.Context(), "a", 5); return err }
		s.set(func(context.Context, string, int) ([]leaf.Range, error) { return nil, leaf.ErrExhausted })
		if err := take(); !errors.Is(err, leaf.ErrExhausted) {
			t.Fatal(err)
		}
		s.set(nil)
		if err := take(); err != nil { // past the cache, which is small now
			t.Fatal(err)
		}
		next(t, c, "a") // a fetch that succeeds, of few
		time.Sleep(time.Minute)
		before := len(s.asked())
		for range 200 {
			if err := take(); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
		}
		if asked := len(s.asked()) - before; asked > 50 {
			t.Errorf("the source was asked %d times for 200 calls", asked)
		}
	})
}

// TestMaxTags: tags beyond the limit are served by the source.
func TestMaxTags(t *testing.T) {
	t.Parallel()
	s := newSource()
	c := open(t, s, cache.Config{MaxTags: 2})
	for _, tag := range []string{"a", "b", "c", "c", "c"} {
		next(t, c, tag)
	}
	if r, err := c.NextN(t.Context(), "c", 5); err != nil || r[0] != (leaf.Range{Lo: 4, Hi: 9}) {
		t.Errorf("NextN = %v, %v", r, err)
	}
	if st := c.Stats(); st.Tags != 2 {
		t.Errorf("%d tags in memory", st.Tags)
	}
}

// TestRangesThatGoBack: two nodes' ranges may come in any order; a reply of several
// ranges grows all the same, and what it leaves out is counted.
func TestRangesThatGoBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSource()
		los := []int64{1000, 500, 2000}
		s.set(func(_ context.Context, _ string, n int) ([]leaf.Range, error) {
			lo := los[0]
			los = los[1:]
			return []leaf.Range{{Lo: lo, Hi: lo + int64(n)}}, nil
		})
		c := open(t, s, cache.Config{Min: 10, Max: 10})
		for range 8 {
			next(t, c, "a")
			synctest.Wait()
		}
		r, err := c.NextN(t.Context(), "a", 5) // 1008, 1009, then 500 to 502
		if err != nil || len(r) != 1 || r[0] != (leaf.Range{Lo: 500, Hi: 505}) {
			t.Errorf("got %v, %v", r, err)
		}
		if st := c.Stats(); st.Unused != 2 {
			t.Errorf("stats %+v; want 2 unused", st)
		}
	})
}

// TestTopOfTheNumbers: near the top of int64 nothing wraps around.
func TestTopOfTheNumbers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSource()
		first := true
		s.set(func(_ context.Context, _ string, n int) ([]leaf.Range, error) {
			if !first {
				return nil, leaf.ErrOverflow
			}
			first = false
			return []leaf.Range{{Lo: math.MaxInt64 - int64(n), Hi: math.MaxInt64}}, nil
		})
		c := open(t, s, cache.Config{Min: 3, Max: 3})
		for i := range int64(3) {
			if id := next(t, c, "a"); id != math.MaxInt64-3+i {
				t.Errorf("got %d", id)
			}
		}
		for range 10 {
			if id, err := c.Next(t.Context(), "a"); !errors.Is(err, leaf.ErrOverflow) {
				t.Fatalf("got %d, %v", id, err)
			}
		}
	})
}

func TestBadRequests(t *testing.T) {
	t.Parallel()
	s := newSource()
	c := open(t, s, cache.Config{})
	for _, n := range []int{0, -1, leaf.MaxBatch + 1} {
		if _, err := c.NextN(t.Context(), "a", n); !errors.Is(err, leaf.ErrBadRequest) {
			t.Errorf("NextN(%d): %v", n, err)
		}
	}
	if _, err := c.Next(t.Context(), ""); !errors.Is(err, leaf.ErrBadRequest) {
		t.Errorf("empty tag: %v", err)
	}
	for name, cfg := range map[string]cache.Config{
		"cache.max":           {Max: leaf.MaxBatch + 1},
		"cache.min":           {Min: 11, Max: 10},
		"cache.span":          {Span: time.Microsecond},
		"cache.fetch_timeout": {FetchTimeout: -1},
		"cache.max_tags":      {MaxTags: -1},
	} {
		if _, err := cache.New(s, cfg); !errors.Is(err, leaf.ErrBadRequest) || !strings.Contains(err.Error(), name+"=") {
			t.Errorf("%s: %v", name, err)
		}
	}
	if len(s.asked()) != 0 {
		t.Error("the source was asked")
	}
}

// TestSourceThatGivesNothing: a source that breaks its promise is an error, not a loop.
func TestSourceThatGivesNothing(t *testing.T) {
	t.Parallel()
	s := newSource()
	s.set(func(context.Context, string, int) ([]leaf.Range, error) { return nil, nil })
	c := open(t, s, cache.Config{})
	if _, err := c.Next(t.Context(), "a"); !errors.Is(err, leaf.ErrNotReady) {
		t.Errorf("error %v", err)
	}
}
