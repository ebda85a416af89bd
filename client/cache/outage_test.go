package cache_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/client/cache"
)

// TestOutage: while the source is away what is in memory is handed out, then the callers
// get its error; when it is back the tag is served again, in advance too.
func TestOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSource()
		c := open(t, s, cache.Config{Min: 10, Max: 10})
		next(t, c, "a")
		s.set(func(context.Context, string, int) ([]leaf.Range, error) {
			return nil, leaf.Throttled("the tag's rate", time.Second)
		})
		for want := int64(2); want <= 10; want++ {
			if id := next(t, c, "a"); id != want {
				t.Fatalf("got %d, want %d", id, want)
			}
			synctest.Wait()
		}
		for range 3 {
			_, err := c.Next(t.Context(), "a")
			if !errors.Is(err, leaf.ErrThrottled) || leaf.RetryAfter(err) != time.Second {
				t.Fatalf("error %v; want the source's", err)
			}
		}
		if n := len(s.asked()); n != 5 {
			t.Errorf("%d fetches %v; want the first, one in advance, one for each caller", n, s.asked())
		}
		s.set(nil)
		if id := next(t, c, "a"); id != 11 {
			t.Errorf("after the outage %d, want 11", id)
		}
	})
}

// TestPrefetchIsTriedAgain: a fetch in advance that failed is tried again after a rest,
// before the stock is used up.
func TestPrefetchIsTriedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSource()
		c := open(t, s, cache.Config{Min: 100, Max: 100})
		next(t, c, "a")
		s.set(func(context.Context, string, int) ([]leaf.Range, error) { return nil, leaf.ErrNotReady })
		for range 60 { // past the half
			next(t, c, "a")
			synctest.Wait()
		}
		if n := len(s.asked()); n != 2 {
			t.Fatalf("%d fetches, want one in advance that failed", n)
		}
		time.Sleep(3 * time.Second)
		if n := len(s.asked()); n != 2 {
			t.Errorf("%d fetches for a tag that nobody asked for meanwhile", n)
		}
		s.set(nil)
		if id := next(t, c, "a"); id != 62 {
			t.Errorf("got %d, want 62", id)
		}
		synctest.Wait()
		if st := c.Stats(); st.Held != 38+100 {
			t.Errorf("stats %+v; want a second fetch in memory", st)
		}
	})
}

// TestDeadline: a caller's deadline ends its wait, not the fetch; what the fetch brings
// is for the next caller.
func TestDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSource()
		s.set(func(ctx context.Context, tag string, n int) ([]leaf.Range, error) {
			time.Sleep(time.Second)
			return s.give(tag, n), ctx.Err()
		})
		c := open(t, s, cache.Config{})
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		if _, err := c.Next(ctx, "a"); !errors.Is(err, leaf.ErrExhausted) || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("error %v", err)
		}
		if id := next(t, c, "a"); id != 1 || len(s.asked()) != 1 {
			t.Errorf("got %d after fetches %v", id, s.asked())
		}
	})
}

// TestFetchTimeout: a source that hangs costs a caller without a deadline no more than
// the fetch timeout.
func TestFetchTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSource()
		s.set(func(ctx context.Context, _ string, _ int) ([]leaf.Range, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		})
		c := open(t, s, cache.Config{FetchTimeout: 3 * time.Second})
		began := time.Now()
		_, err := c.Next(t.Context(), "a")
		if !errors.Is(err, leaf.ErrNotReady) || time.Since(began) != 3*time.Second {
			t.Errorf("%v after %v", err, time.Since(began))
		}
	})
}

// TestLateCallers: a fetch that began long ago fails at its time limit. Callers who came shortly
// before that do not fail with it: all of them wait for one further fetch. An answer of the
// source is an answer for them, too.
func TestLateCallers(t *testing.T) {
	for _, tt := range []struct {
		name          string
		first, second error // of the fetch under way, and of the next
		fetches       int
	}{
		{"the next one succeeds", leaf.ErrNotReady, nil, 2},
		{"exhausted", leaf.ErrExhausted, nil, 3}, // the next one asks for fewer, and most of it is used at once
		{"the next one fails, too", leaf.ErrNotReady, leaf.ErrExhausted, 2},
		{"throttled", leaf.Throttled("the tag's rate", time.Second), nil, 1},
		{"blocked", leaf.ErrBlocked, nil, 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newSource()
				c := open(t, s, cache.Config{Min: 50})
				s.set(func(ctx context.Context, tag string, n int) ([]leaf.Range, error) {
					switch {
					case len(s.asked()) == 1:
						<-ctx.Done()
						return nil, tt.first
					case tt.second != nil:
						<-ctx.Done()
						return nil, tt.second
					}
					return s.give(tag, n), nil
				})
				var callers sync.WaitGroup
				callers.Go(func() {
					if _, err := c.Next(t.Context(), "a"); !errors.Is(err, tt.first) {
						t.Errorf("who started the fetch got %v", err)
					}
				})
				time.Sleep(1970 * time.Millisecond)
				want := tt.second
				if tt.fetches == 1 {
					want = tt.first
				}
				for range 20 {
					callers.Go(func() {
						if _, err := c.Next(t.Context(), "a"); !errors.Is(err, want) {
							t.Errorf("who came later got %v, want %v", err, want)
						}
					})
				}
				callers.Wait()
				synctest.Wait() // a fetch in advance begins
				if got := s.asked(); len(got) != tt.fetches {
					t.Errorf("fetches of %v, want %d", got, tt.fetches)
				}
			})
		})
	}
}
