package client_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/client"
)

// bubble runs a test on fake time, with what the client starts.
func bubble(t *testing.T, f func(t *testing.T)) {
	t.Helper()
	synctest.Test(t, f)
}

// TestCallersShare: the first caller sends at once and alone; those who come while its
// request is under way leave together, and get their IDs in order of arrival.
func TestCallersShare(t *testing.T) {
	bubble(t, func(t *testing.T) {
		cl := newCluster(node("a", "", 100))
		a := cl.nodes["a"]
		c := cl.client(t)
		synctest.Wait()
		a.freeze()
		var callers sync.WaitGroup
		got := make([]int64, 6)
		for i := range got {
			callers.Go(func() {
				if i == 3 {
					ranges, err := c.NextN(t.Context(), "order", 10)
					if err != nil || len(ranges) != 1 || ranges[0].Len() != 10 {
						t.Errorf("NextN = %v, %v", ranges, err)
						return
					}
					got[i] = ranges[0].Lo
					return
				}
				id, err := c.Next(t.Context(), "order")
				if err != nil {
					t.Error(err)
				}
				got[i] = id
			})
			synctest.Wait()
		}
		if diff := cmp.Diff([]int{1}, a.counts()); diff != "" {
			t.Errorf("requests before the first answer (-want +got):\n%s", diff)
		}
		a.thaw()
		callers.Wait()
		if diff := cmp.Diff([]int{1, 14}, a.counts()); diff != "" {
			t.Errorf("requests (-want +got):\n%s", diff)
		}
		if want := []int64{1, 2, 3, 4, 14, 15}; !slices.Equal(got, want) {
			t.Errorf("IDs in order of arrival: %v, want %v", got, want)
		}
		if s := c.Stats(); s.Lost != 0 || s.Hedges != 0 {
			t.Errorf("%+v: something was lost or asked twice", s)
		}
	})
}

// TestTagsDoNotShare: a request that waits holds up neither another tag nor the other
// mode of the same tag.
func TestTagsDoNotShare(t *testing.T) {
	bubble(t, func(t *testing.T) {
		cl := newCluster(node("a", "", 100))
		a := cl.nodes["a"]
		release := make(chan struct{})
		a.answer = func(r *client.Request) ([]leaf.Range, error) {
			if r.Tag == "slow" && r.Mode == 1 {
				<-release
			}
			return cl.issuer.NextN(t.Context(), r.Tag, r.Count)
		}
		c := cl.client(t)
		slow := make(chan error, 1)
		go func() { _, err := c.Next(t.Context(), "slow"); slow <- err }()
		synctest.Wait()
		for _, ask := range []func() (int64, error){
			func() (int64, error) { return c.Next(t.Context(), "fast") },
			func() (int64, error) { return c.Snowflake().Next(t.Context(), "slow") },
		} {
			start := time.Now()
			if _, err := ask(); err != nil || time.Since(start) != 0 {
				t.Errorf("%v after %v", err, time.Since(start))
			}
		}
		close(release)
		if err := <-slow; err != nil {
			t.Error(err)
		}
	})
}

// TestBatchLimit: a batch asks for no more than the protocol allows.
func TestBatchLimit(t *testing.T) {
	bubble(t, func(t *testing.T) {
		cl := newCluster(node("a", "", 100))
		a := cl.nodes["a"]
		c := cl.client(t)
		synctest.Wait()
		a.freeze()
		var callers sync.WaitGroup
		var ids ledger
		for _, n := range []int{1, 60_000, 40_000, 1, leaf.MaxBatch, 5} {
			callers.Go(func() {
				ranges, err := c.NextN(t.Context(), "order", n)
				if err != nil {
					t.Error(err)
				}
				ids.add(t, ranges...)
			})
			synctest.Wait()
		}
		a.thaw()
		callers.Wait()
		if diff := cmp.Diff([]int{1, 100_000, 1, 100_000, 5}, a.counts()); diff != "" {
			t.Errorf("requests (-want +got):\n%s", diff)
		}
		if ids.len() != 200_007 {
			t.Errorf("%d IDs, want 200007", ids.len())
		}
	})
}

// TestBatchOfRanges: an answer of many ranges is dealt out without a gap or a repeat.
func TestBatchOfRanges(t *testing.T) {
	bubble(t, func(t *testing.T) {
		cl := newCluster(node("a", "", 100))
		a := cl.nodes["a"]
		c := cl.client(t)
		synctest.Wait()
		a.set(func(a *fake) {
			lo := int64(0)
			a.answer = func(r *client.Request) (ranges []leaf.Range, _ error) {
				for left := int64(r.Count); left > 0; {
					n := min(left, 3)
					ranges = append(ranges, leaf.Range{Lo: lo, Hi: lo + n})
					lo += 100
					left -= n
				}
				return ranges, nil
			}
		})
		a.freeze()
		var callers sync.WaitGroup
		var ids ledger
		for n := range 20 {
			callers.Go(func() {
				if n%3 == 0 {
					id, err := c.Next(t.Context(), "order")
					if err != nil {
						t.Error(err)
					}
					ids.add(t, leaf.Range{Lo: id, Hi: id + 1})
					return
				}
				ranges, err := c.NextN(t.Context(), "order", n)
				total := 0
				for _, r := range ranges {
					total += int(r.Len())
				}
				if err != nil || total != n {
					t.Errorf("NextN(%d) = %v, %v", n, ranges, err)
				}
				ids.add(t, ranges...)
			})
			synctest.Wait()
		}
		a.thaw()
		callers.Wait()
		// 7 calls of Next, and NextN of what is not divisible by 3 below 20.
		if ids.len() != 7+1+2+4+5+7+8+10+11+13+14+16+17+19 {
			t.Errorf("%d IDs", ids.len())
		}
	})
}

// TestCallerLeaves: who gives up disturbs nobody, and what comes for it is lost.
func TestCallerLeaves(t *testing.T) {
	for _, c := range []struct {
		name   string
		leaves int // the caller that leaves: 0 is in the request under way
		counts []int
	}{
		{"alone in the request", 0, []int{1, 2}},
		{"before its request", 1, []int{1, 1}},
	} {
		t.Run(c.name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				cl := newCluster(node("a", "", 100))
				a := cl.nodes["a"]
				client := cl.client(t)
				synctest.Wait()
				a.freeze()
				type outcome struct {
					id  int64
					err error
				}
				outcomes := make([]outcome, 3)
				var callers sync.WaitGroup
				leaving, leave := context.WithCancel(t.Context())
				for i := range outcomes {
					ctx := t.Context()
					if i == c.leaves {
						ctx = leaving
					}
					callers.Go(func() { outcomes[i].id, outcomes[i].err = client.Next(ctx, "order") })
					synctest.Wait()
				}
				leave()
				synctest.Wait()
				a.thaw()
				callers.Wait()
				var ids ledger
				for i, o := range outcomes {
					if i == c.leaves {
						if !errors.Is(o.err, context.Canceled) || leaf.ClassOf(o.err).Err != nil {
							t.Errorf("the caller that left got %d, %v", o.id, o.err)
						}
						continue
					}
					if o.err != nil {
						t.Errorf("caller %d: %v", i, o.err)
					}
					ids.add(t, leaf.Range{Lo: o.id, Hi: o.id + 1})
				}
				synctest.Wait()
				if diff := cmp.Diff(c.counts, a.counts()); diff != "" {
					t.Errorf("requests (-want +got):\n%s", diff)
				}
				if s := client.Stats(); s.Lost != 0 { // the request was given up, too
					t.Errorf("%d lost", s.Lost)
				}
			})
		})
	}
}

// TestCallerLeavesCompany: what comes for a caller that has left is nobody's; those who
// share its request get theirs.
func TestCallerLeavesCompany(t *testing.T) {
	bubble(t, func(t *testing.T) {
		cl := newCluster(node("a", "", 100))
		a := cl.nodes["a"]
		c := cl.client(t)
		synctest.Wait()
		step := make(chan struct{})
		a.set(func(a *fake) {
			a.answer = func(r *client.Request) ([]leaf.Range, error) {
				<-step
				return cl.issuer.NextN(context.Background(), r.Tag, r.Count)
			}
		})
		var ids ledger
		var callers sync.WaitGroup
		leaving, leave := context.WithCancel(t.Context())
		for i := range 4 {
			callers.Go(func() {
				ctx := t.Context()
				if i == 2 {
					ctx = leaving
				}
				ranges, err := c.NextN(ctx, "order", 10)
				if (err != nil) != (i == 2) {
					t.Errorf("caller %d: %v", i, err)
				}
				ids.add(t, ranges...)
			})
			synctest.Wait()
		}
		step <- struct{}{} // the first caller's request
		synctest.Wait()
		leave()
		synctest.Wait()
		close(step)
		callers.Wait()
		synctest.Wait() // the reply is shared out to its end
		if diff := cmp.Diff([]int{10, 30}, a.counts()); diff != "" {
			t.Errorf("requests (-want +got):\n%s", diff)
		}
		if s := c.Stats(); s.Lost != 10 || ids.len() != 30 {
			t.Errorf("%d lost, %d received; want 10 and 30", s.Lost, ids.len())
		}
	})
}

// TestLanesEnd: a tag that is not used any more leaves nothing behind.
func TestLanesEnd(t *testing.T) {
	bubble(t, func(t *testing.T) {
		c := newCluster(node("a", "", 100)).client(t)
		for i := range 100 {
			if _, err := c.Next(t.Context(), string(rune('a'+i))); err != nil {
				t.Fatal(err)
			}
		}
		if c.Lanes() != 100 {
			t.Fatalf("%d lanes", c.Lanes())
		}
		for range 10 {
			time.Sleep(30 * time.Second)
			if _, err := c.Next(t.Context(), "a"); err != nil {
				t.Fatal(err)
			}
		}
		if c.Lanes() != 1 {
			t.Errorf("%d lanes are left, want 1", c.Lanes())
		}
	})
}
