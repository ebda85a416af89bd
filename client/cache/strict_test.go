package cache_test

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/client/cache"
)

// ordered is a source whose tags are in strict order while strict is set.
type ordered struct {
	*source
	strict atomic.Bool
}

func (o *ordered) NextNStrict(ctx context.Context, tag string, n int) ([]leaf.Range, bool, error) {
	strict := o.strict.Load()
	ranges, err := o.NextN(ctx, tag, n)
	return ranges, strict, err
}

// newest says whether id is the last one that the source gave: it was fetched for this call.
func (o *ordered) newest(id int64) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.next["a"] == id
}

// TestStrict: of a tag in strict order every call gets what was fetched for it alone.
func TestStrict(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &ordered{source: newSource()}
		s.strict.Store(true)
		c := open(t, s, cache.Config{Min: 10, Max: 10})
		fresh := func(step string) {
			t.Helper()
			for range 3 {
				if id := next(t, c, "a"); !s.newest(id) {
					t.Errorf("%s: got %d, which was fetched before the call", step, id)
				}
			}
			if ranges, err := c.NextN(t.Context(), "a", 2); err != nil || !s.newest(ranges[len(ranges)-1].Hi-1) {
				t.Errorf("%s: got %v, %v, which was fetched before the call", step, ranges, err)
			}
			if held := c.Stats().Held; held > 0 {
				t.Errorf("%s: %d IDs are kept", step, held)
			}
		}
		fresh("from the start")
		s.strict.Store(false)
		next(t, c, "a")
		next(t, c, "a")
		if held := c.Stats().Held; held == 0 {
			t.Error("nothing is kept of a tag that is in plain order again")
		}
		s.strict.Store(true)
		if _, err := c.NextN(t.Context(), "a", 10); err != nil { // it goes through to the source
			t.Fatal(err)
		}
		fresh("by a call that went through")
		s.strict.Store(false)
		next(t, c, "a")
		for range 5 {
			next(t, c, "a")
		}
		s.set(func(_ context.Context, tag string, n int) ([]leaf.Range, error) {
			ranges := s.give(tag, n)
			if n == 10 {
				time.Sleep(time.Second)
			}
			return ranges, nil
		})
		next(t, c, "a") // begins a fetch in advance, of a tag in plain order
		synctest.Wait()
		s.strict.Store(true)
		if _, err := c.NextN(t.Context(), "a", 11); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		if st := c.Stats(); st.Held > 0 || st.Unused == 0 {
			t.Errorf("after a fetch that began before: %+v", st)
		}
	})
}

// TestStrictFetchUnderWay: callers that come in the middle of a fetch get none of its IDs.
func TestStrictFetchUnderWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &ordered{source: newSource()}
		s.strict.Store(true)
		s.set(func(_ context.Context, tag string, n int) ([]leaf.Range, error) {
			ranges := s.give(tag, n)
			time.Sleep(time.Second)
			return ranges, nil
		})
		c := open(t, s, cache.Config{Min: 10})
		ids := collect(t, c, "a", 1, 1)
		time.Sleep(time.Second / 2)
		late := collect(t, c, "a", 5, 1)
		for _, id := range append(ids(), late()...) {
			if id <= 10 {
				t.Errorf("got %d of the fetch that was under way", id)
			}
		}
	})
}
