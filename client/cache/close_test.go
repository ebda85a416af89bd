package cache_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/client/cache"
)

// TestClose: what is in memory, and what arrives later, is counted and nobody gets it.
func TestClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSource()
		c := open(t, s, cache.Config{Min: 10, Max: 10})
		for range 3 {
			next(t, c, "a")
		}
		next(t, c, "b")
		s.set(func(_ context.Context, tag string, n int) ([]leaf.Range, error) {
			time.Sleep(time.Second) // ignores its context
			return s.give(tag, n), nil
		})
		for range 3 {
			next(t, c, "a") // the last one starts a fetch
		}
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		if err := c.Close(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Close under a fetch: %v", err)
		}
		if err := c.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		if st := c.Stats(); st.Unused != 4+9+10 || st.Held != 0 || st.Fetched != 30 {
			t.Errorf("stats %+v; want 23 unused of 30", st)
		}
		for _, tag := range []string{"a", "new"} {
			if _, err := c.Next(t.Context(), tag); !errors.Is(err, leaf.ErrNotReady) || !strings.Contains(err.Error(), "closed") {
				t.Errorf("Next(%q) after Close: %v", tag, err)
			}
			if _, err := c.NextN(t.Context(), tag, 2); !errors.Is(err, leaf.ErrNotReady) {
				t.Errorf("NextN(%q) after Close: %v", tag, err)
			}
		}
	})
}

// TestEveryIDIsAccountedFor: under a Close in the middle of the load each ID that the
// source gave was handed out once or is counted as unused.
func TestEveryIDIsAccountedFor(t *testing.T) {
	t.Parallel()
	for round := range 20 {
		s := newSource()
		c := open(t, s, cache.Config{Min: 1 + round, Max: 50})
		var mu sync.Mutex
		var all []int64
		var done sync.WaitGroup
		for range 4 {
			done.Go(func() {
				var mine []int64
				for {
					id, err := c.Next(t.Context(), "a")
					if err != nil {
						break
					}
					if mine = append(mine, id); len(mine) == 200*(1+round) {
						done.Go(func() { _ = c.Close(context.Background()) })
					}
				}
				mu.Lock()
				defer mu.Unlock()
				all = append(all, mine...)
			})
		}
		done.Wait()
		if err := c.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		if st := c.Stats(); st.Fetched != int64(len(all))+st.Unused || st.Held != 0 {
			t.Errorf("%d handed out, %+v", len(all), st)
		}
		wantDistinct(t, all, len(all))
	}
}

// TestCloseEndsWaiters: a caller who waits when the cache is closed is told so.
func TestCloseEndsWaiters(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSource()
		s.set(func(ctx context.Context, _ string, _ int) ([]leaf.Range, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		})
		c := open(t, s, cache.Config{})
		failed := make(chan error)
		go func() {
			_, err := c.Next(t.Context(), "a")
			failed <- err
		}()
		synctest.Wait()
		go func() { _ = c.Close(context.Background()) }()
		if err := <-failed; !errors.Is(err, leaf.ErrNotReady) || !strings.Contains(err.Error(), "closed") {
			t.Errorf("error %v", err)
		}
	})
}

// TestCloseOfAForgottenTag: a handle whose tag was unknown when it was first used is
// closed like any other.
func TestCloseOfAForgottenTag(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSource()
		s.set(func(context.Context, string, int) ([]leaf.Range, error) { return nil, leaf.ErrUnknownTag })
		c := open(t, s, cache.Config{Min: 10})
		tag, err := c.Tag("a")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := tag.Next(t.Context()); !errors.Is(err, leaf.ErrUnknownTag) {
			t.Fatal(err)
		}
		s.set(nil) // somebody has made the tag
		if _, err := tag.Next(t.Context()); err != nil {
			t.Fatal(err)
		}
		next(t, c, "a")
		synctest.Wait()
		if err := c.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		if id, err := tag.Next(t.Context()); !errors.Is(err, leaf.ErrNotReady) {
			t.Errorf("after Close: %d, %v", id, err)
		}
		if st := c.Stats(); st.Fetched != st.Unused+2 {
			t.Errorf("%+v: 2 were handed out", st)
		}
	})
}

// TestTagAfterClose: a closed cache makes no tags, which would fill its memory.
func TestTagAfterClose(t *testing.T) {
	t.Parallel()
	c := open(t, newSource(), cache.Config{})
	if err := c.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if tag, err := c.Tag("later"); tag != nil || !errors.Is(err, leaf.ErrNotReady) {
		t.Errorf("Tag after Close = %v, %v", tag, err)
	}
	if n := c.Stats().Tags; n != 0 {
		t.Errorf("%d tags", n)
	}
}

// TestTagBesideClose: tags that are made while Close runs give no ID after it.
func TestTagBesideClose(t *testing.T) {
	t.Parallel()
	for range 20 {
		c := open(t, newSource(), cache.Config{Min: 1})
		var made [4][]*cache.Tag
		var making sync.WaitGroup
		begun := make(chan struct{}, len(made))
		for i := range made {
			making.Go(func() {
				for k := 0; ; k++ {
					tag, err := c.Tag(fmt.Sprint("tag ", i, " ", k))
					if err != nil {
						return
					}
					made[i] = append(made[i], tag)
					if k == 10 {
						begun <- struct{}{}
					}
				}
			})
		}
		for range made {
			<-begun
		}
		if err := c.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		making.Wait()
		if ranges, err := c.NextN(t.Context(), "later", 5); !errors.Is(err, leaf.ErrNotReady) {
			t.Fatalf("NextN of a new tag after Close = %v, %v", ranges, err)
		}
		for _, tag := range slices.Concat(made[:]...) {
			if tag == nil { // there were too many
				continue
			}
			if ranges, err := tag.NextN(t.Context(), 5); !errors.Is(err, leaf.ErrNotReady) {
				t.Fatalf("NextN after Close = %v, %v", ranges, err)
			}
		}
	}
}

// TestSourcePanics: a panic of the source, in a goroutine of the cache, is an error of the
// fetch.
func TestSourcePanics(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSource()
		c := open(t, s, cache.Config{})
		s.set(func(context.Context, string, int) ([]leaf.Range, error) { panic("an accident") })
		if id, err := c.Next(t.Context(), "a"); err == nil || !strings.Contains(err.Error(), "an accident") {
			t.Errorf("Next = %d, %v", id, err)
		}
		s.set(nil)
		if id := next(t, c, "a"); id != 1 {
			t.Errorf("Next = %d after the source works again", id)
		}
		if st := c.Stats(); st.Failures != 1 || st.Fetches != 1 {
			t.Errorf("%+v", st)
		}
	})
}
