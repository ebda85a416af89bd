package cache_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/client/cache"
)

// TestRegress: when the source says that its store went backwards, what is in memory may be
// in use elsewhere. It is dropped, as a node drops its ranges, and so is what a fetch brings
// that began before. After the repair the tag goes on with what the source gives then.
func TestRegress(t *testing.T) {
	regress := func(context.Context, string, int) ([]leaf.Range, error) { return nil, leaf.ErrRegress }
	for name, learn := range map[string]func(t *testing.T, s *source, c *cache.Cache) (handed int64){
		"a fetch in advance": func(t *testing.T, s *source, c *cache.Cache) (handed int64) {
			s.set(regress)
			for ; handed < 5; handed++ {
				next(t, c, "a")
			}
			return handed
		},
		"a call that goes through to the source": func(t *testing.T, s *source, c *cache.Cache) (handed int64) {
			s.set(regress)
			if _, err := c.NextN(t.Context(), "a", 10); !errors.Is(err, leaf.ErrRegress) {
				t.Fatalf("NextN: %v", err)
			}
			return 0
		},
		"a call beside a fetch under way": func(t *testing.T, s *source, c *cache.Cache) (handed int64) {
			s.set(func(_ context.Context, tag string, n int) ([]leaf.Range, error) {
				time.Sleep(time.Second)
				return s.give(tag, n), nil
			})
			for ; handed < 5; handed++ {
				next(t, c, "a")
			}
			synctest.Wait()
			s.set(regress)
			if _, err := c.NextN(t.Context(), "a", 10); !errors.Is(err, leaf.ErrRegress) {
				t.Fatalf("NextN: %v", err)
			}
			time.Sleep(time.Minute)
			return handed
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newSource()
				c := open(t, s, cache.Config{Min: 10, Max: 10})
				next(t, c, "a")
				next(t, c, "b")
				handed := learn(t, s, c) + 4 // with those of this function
				synctest.Wait()
				for range 2 {
					if id, err := c.Next(t.Context(), "a"); !errors.Is(err, leaf.ErrRegress) {
						t.Errorf("got %d, %v after the source said that its store went backwards; want its error", id, err)
					}
				}
				if id := next(t, c, "b"); id != 2 {
					t.Errorf("another tag gives %d, want 2", id)
				}
				s.set(func(_ context.Context, _ string, n int) ([]leaf.Range, error) {
					return []leaf.Range{{Lo: 1000, Hi: 1000 + int64(n)}}, nil
				})
				if id := next(t, c, "a"); id != 1000 {
					t.Errorf("after the repair %d, want 1000", id)
				}
				synctest.Wait()
				if st := c.Stats(); st.Fetched != handed+st.Held+st.Unused || st.Unused == 0 {
					t.Errorf("stats %+v with %d handed out: IDs are missing", st, handed)
				}
			})
		})
	}
}

// TestRegressBesideABatch: a call for several IDs has some of them and waits for a fetch, while another call hears that the store
// went backwards. What the call has is dropped, too.
func TestRegressBesideABatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSource()
		c := open(t, s, cache.Config{Min: 10, Max: 10})
		next(t, c, "a")
		release := make(chan struct{})
		s.set(func(_ context.Context, tag string, n int) ([]leaf.Range, error) {
			<-release
			return s.give(tag, n), nil
		})
		for range 5 {
			next(t, c, "a")
		}
		batch := make(chan []leaf.Range)
		go func() {
			got, err := c.NextN(t.Context(), "a", 8)
			if err != nil {
				t.Error(err)
			}
			batch <- got
		}()
		synctest.Wait()
		if held := c.Stats().Held; held != 0 {
			t.Fatalf("the cache holds %d IDs: the test no longer tests what it says", held)
		}
		s.set(func(context.Context, string, int) ([]leaf.Range, error) { return nil, leaf.ErrRegress })
		if _, err := c.NextN(t.Context(), "a", 10); !errors.Is(err, leaf.ErrRegress) {
			t.Fatalf("NextN: %v", err)
		}
		s.set(func(_ context.Context, _ string, n int) ([]leaf.Range, error) {
			return []leaf.Range{{Lo: 1000, Hi: 1000 + int64(n)}}, nil
		})
		close(release)
		if got := <-batch; len(got) != 1 || got[0] != (leaf.Range{Lo: 1000, Hi: 1008}) {
			t.Errorf("the call got %v after the repair, want IDs from 1000 on", got)
		}
		synctest.Wait()
		if st := c.Stats(); st.Fetched != 6+8+st.Held+st.Unused {
			t.Errorf("stats %+v with 14 handed out: IDs are missing", st)
		}
	})
}
