package segment_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/driver/memory"
	"github.com/leaf-idgen/leaf/segment"
	"github.com/leaf-idgen/leaf/segment/fence"
)

// useUp takes IDs until there are none.
func useUp(t *testing.T, a *segment.Allocator, ids *ledger) (last int64) {
	t.Helper()
	for range 100_000 {
		id, err := a.Next(t.Context(), "order")
		if err != nil {
			if !errors.Is(err, leaf.ErrExhausted) && !errors.Is(err, leaf.ErrNotReady) {
				t.Fatal(err)
			}
			return last
		}
		ids.add(t, "stock", id)
		last = id
	}
	t.Fatal("the stock does not end")
	return 0
}

// TestClusterFenceDown: without the policy degrade there is no new range while the
// fence does not answer; the stock is served, and loads go on within a second of its
// first answer.
func TestClusterFenceDown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, f, ids, al := newStore(row(100)), sharing(memory.NewFence()), newLedger(), newAlarms()
		f.breakDown()
		cfg := fenced("a", f, al)
		cfg.MaxWait = time.Second
		a := node(t, s, nil, cfg)
		_, err := a.Next(t.Context(), "order")
		wantErr(t, err, leaf.ErrNotReady)
		st := a.Status()
		if st.Ready || !strings.Contains(strings.Join(st.Reasons, " "), `"zk" has not answered yet`) {
			t.Errorf("status %+v at a start without the fence", st)
		}
		al.want(t, "fence zk")
		f.heal()
		time.Sleep(250 * time.Millisecond) // the longest pause between two questions to the fence
		al.want(t)
		time.Sleep(time.Second) // the longest pause between two loads of a tag that no caller waits for
		if st := a.Status(); !st.Ready || len(st.Reasons) != 0 {
			t.Errorf("status %+v with the fence", st)
		}
		al.want(t)
		ids.add(t, "a", drain(t, a, "order", 50)...)
		synctest.Wait()

		f.breakDown()
		reserves := s.count()
		if last := useUp(t, a, ids); last != 200 {
			t.Errorf("last ID of the stock is %d, want 200", last)
		}
		al.want(t, "exhausted order", "fence zk") // no word about the store
		if n := s.count() - reserves; n != 0 {
			t.Errorf("%d ranges reserved without the fence", n)
		}
		if st := a.Status(); st.Ready || !strings.Contains(strings.Join(st.Reasons, " "), "does not answer, and no tag has IDs in memory") {
			t.Errorf("status %+v in an outage without stock", st)
		}
		time.Sleep(time.Hour)
		f.heal()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		id, err := a.Next(ctx, "order")
		if err != nil {
			t.Fatalf("a second after the fence answers: %v", err)
		}
		ids.add(t, "a", id)
		al.want(t)
	})
}

// TestClusterFenceHiccup: one call that fails costs no ID, no alarm and no pause
// worth the name, once with and once without effect.
func TestClusterFenceHiccup(t *testing.T) {
	for _, happened := range []bool{false, true} {
		t.Run(fmt.Sprint("happened ", happened), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, f, al := newStore(row(10)), sharing(memory.NewFence()), newAlarms()
				a := node(t, s, nil, degraded(f, al))
				next(t, a, "order")
				n := 0
				f.set(func(f *shared) {
					f.onSwap = func(_ context.Context, tag string, _ *fence.Entry, _ int64, do func() (fence.Entry, error)) (fence.Entry, error) {
						if tag != "order" {
							return do()
						}
						if n++; n%3 != 0 {
							return do()
						}
						if happened {
							_, _ = do()
						}
						return fence.Entry{}, errDown
					}
				})
				start := time.Now()
				increasing(t, drain(t, a, "order", 200))
				if d := time.Since(start); d > time.Second {
					t.Errorf("took %v", d)
				}
				if h := al.history(); len(h) != 0 {
					t.Errorf("alarms %q", h)
				}
				f.heal()
			})
		})
	}
}

// TestClusterFenceThatCannotWrite answers and reads, as an etcd does whose quota is
// used up. It counts as down, and costs a handful of ranges, not one per attempt.
func TestClusterFenceThatCannotWrite(t *testing.T) {
	for _, degrade := range []bool{false, true} {
		t.Run(fmt.Sprint("degrade ", degrade), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, f, ids, al := newStore(row(100)), sharing(memory.NewFence()), newLedger(), newAlarms()
				cfg := fenced("a", f, al)
				cfg.MaxWait, cfg.Degrade = time.Second, degrade
				a := node(t, s, nil, cfg)
				ids.add(t, "a", drain(t, a, "order", 50)...)
				synctest.Wait()
				reserves := s.count()
				f.breakDown()
				f.set(func(f *shared) { f.onOpen, f.onRead = nil, nil })
				if degrade {
					ids.add(t, "a", drain(t, a, "order", 1000)...)
					al.want(t, "fence zk")
				} else {
					useUp(t, a, ids)
					for range 60 {
						_, err := a.Next(t.Context(), "order")
						wantErr(t, err, leaf.ErrExhausted)
					}
					al.want(t, "exhausted order", "fence zk")
					if n := s.count() - reserves; n > 2 {
						t.Errorf("%d ranges burnt in a minute", n)
					}
				}
				f.heal()
				time.Sleep(time.Second)
				ids.add(t, "a", drain(t, a, "order", 1000)...)
				al.want(t)
			})
		})
	}
}

// TestHungClusterFence: calls that ignore their deadline are abandoned, bounded in
// number, and cost the tag no more than the outage.
func TestHungClusterFence(t *testing.T) {
	for _, call := range []string{"open", "read", "swap"} {
		t.Run(call, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, f := newStore(), sharing(memory.NewFence())
				for i := range 100 {
					s.Put(segment.Row{Tag: fmt.Sprint("tag-", i), MaxID: 1, Step: 10})
				}
				release := make(chan struct{})
				cfg := fenced("a", f, nil)
				cfg.MaxLoads, cfg.MaxWait = 4, time.Second
				f.set(func(f *shared) {
					switch call {
					case "open":
						f.onOpen = func(_ context.Context, do func() (string, bool, error)) (string, bool, error) {
							<-release
							return do()
						}
					case "read":
						f.onRead = func(_ context.Context, _ string, do func() (fence.Entry, bool, error)) (fence.Entry, bool, error) {
							<-release
							return do()
						}
					case "swap":
						f.onSwap = func(_ context.Context, _ string, _ *fence.Entry, _ int64, do func() (fence.Entry, error)) (fence.Entry, error) {
							<-release
							return do()
						}
					}
				})
				a := node(t, s, nil, cfg)
				for i := range 100 {
					go func() { _, _ = a.Next(t.Context(), fmt.Sprint("tag-", i)) }()
				}
				time.Sleep(time.Minute)
				if n := a.Status().Abandoned; n < 1 || n > 2*4 { // as many as may be abandoned, and as many that began before that
					t.Errorf("%d calls abandoned, want 1 to 8", n)
				}
				f.heal()
				close(release)
				time.Sleep(time.Second)
				for i := range 100 {
					next(t, a, fmt.Sprint("tag-", i))
				}
			})
		})
	}
}

// TestWipedClusterFence: a namespace that is not the one this node knows gets the
// node's own fences before any range is taken under it, also those of tags that the
// node does not load now. It is noticed at run time and at the start.
func TestWipedClusterFence(t *testing.T) {
	for _, c := range []struct {
		name    string
		restart bool
		wipe    func(t *testing.T, f *memory.Fence)
	}{
		{"while it runs", false, func(_ *testing.T, f *memory.Fence) { f.Wipe() }},
		{"between two starts", true, func(_ *testing.T, f *memory.Fence) { f.Wipe() }},
		{"and made anew by another node", false, func(t *testing.T, f *memory.Fence) {
			f.Wipe()
			node(t, newStore(row(10)), nil, fenced("other", f, nil))
			synctest.Wait()
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, f, d, ids, al := newStore(row(10), segment.Row{Tag: "cart", MaxID: 1, Step: 10}), memory.NewFence(), newDisk(), newLedger(), newAlarms()
				a := node(t, s, d, fenced("a", sharing(f), al))
				ids.add(t, "a", drain(t, a, "order", 100)...)
				next(t, a, "cart")
				synctest.Wait()
				if c.restart {
					closeNode(t, a)
				}
				c.wipe(t, f)
				if c.restart {
					time.Sleep(25 * time.Hour) // no tag is recent, so nothing is loaded
					a = node(t, s, d, fenced("a", sharing(f), al))
					synctest.Wait()
				} else {
					ids.add(t, "a", drain(t, a, "order", 25)...) // the next loads notice
					synctest.Wait()
				}
				if h := al.history(); !slices.Equal(h, []string{"+fence zk", "-fence zk"}) {
					t.Errorf("alarms %q, want the fence once", h)
				}
				for _, tag := range []string{"order", "cart"} {
					if end, high := sharing(f).end(t, tag), a.Mark(tag).High; high == 0 || end < high {
						t.Errorf("tag %s: cluster fence %d, own fence %d", tag, end, high)
					}
				}
				// The database comes back from a dump, too.
				s.Put(row(10))
				s.Put(segment.Row{Tag: "cart", MaxID: 1, Step: 1})
				fresh := node(t, s, nil, fenced("fresh", sharing(f), nil))
				for _, tag := range []string{"order", "cart"} {
					_, err := fresh.Next(t.Context(), tag)
					wantErr(t, err, leaf.ErrRegress)
				}
			})
		})
	}
}

// TestMergeBeforeUse: no range is taken under a namespace that this node's fences
// are not in yet.
func TestMergeBeforeUse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, f, d := newStore(row(10), segment.Row{Tag: "cart", MaxID: 1, Step: 10}), sharing(memory.NewFence()), newDisk()
		plain := node(t, s, d, segment.Config{NodeID: "a", FixedStep: true}) // before the fence was configured
		drain(t, plain, "order", 100)
		drain(t, plain, "cart", 100)
		closeNode(t, plain)
		time.Sleep(25 * time.Hour) // no tag is recent, so nothing is loaded
		enter, leave := make(chan struct{}), make(chan struct{})
		f.set(func(f *shared) {
			f.onSwap = func(_ context.Context, tag string, _ *fence.Entry, _ int64, do func() (fence.Entry, error)) (fence.Entry, error) {
				if tag == "cart" {
					close(enter)
					<-leave
					f.heal()
				}
				return do()
			}
		})
		a := node(t, s, d, fenced("a", f, nil))
		<-enter
		synctest.Wait()
		reserves := s.count()
		if st := a.Status(); st.Ready || !strings.Contains(strings.Join(st.Reasons, " "), "being merged") {
			t.Errorf("status %+v in the middle of the merge", st)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err := a.Next(ctx, "order")
		wantErr(t, err, leaf.ErrNotReady)
		if s.count() != reserves || merged(d) {
			t.Errorf("%d ranges reserved in the middle of the merge, merged %v", s.count()-reserves, merged(d))
		}
		close(leave)
		next(t, a, "order")
		if f.end(t, "cart") != a.Mark("cart").High || !merged(d) {
			t.Errorf("cart: cluster fence %d, own fence %+v, merged %v", f.end(t, "cart"), a.Mark("cart"), merged(d))
		}
	})
}

// TestMissingEntryIsNotZero: an entry that vanished from the namespace that this
// node knows, or went back, is no licence to start from nothing. All of the node's
// fences go in again before the next range.
func TestMissingEntryIsNotZero(t *testing.T) {
	type answer = func() (fence.Entry, bool, error)
	for name, forget := range map[string]func(e fence.Entry) (fence.Entry, bool, error){
		"gone":      func(fence.Entry) (fence.Entry, bool, error) { return fence.Entry{}, false, nil },
		"went back": func(e fence.Entry) (fence.Entry, bool, error) { e.Version--; return e, true, nil },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, f, d, al := newStore(row(10), segment.Row{Tag: "cart", MaxID: 1, Step: 10}), sharing(memory.NewFence()), newDisk(), newAlarms()
				cfg := fenced("a", f, al)
				cfg.MaxLoads = 1 // one call at a time
				a := node(t, s, d, cfg)
				next(t, a, "cart")
				first := next(t, a, "order")
				f.lower(t, "cart", 1) // the store was restored from a backup: cart's entry is older, too
				once, swaps := true, []string{}
				f.set(func(f *shared) {
					f.onRead = func(_ context.Context, tag string, do answer) (fence.Entry, bool, error) {
						e, ok, err := do()
						if tag == "order" && once {
							once = false
							return forget(e)
						}
						return e, ok, err
					}
					f.onSwap = func(_ context.Context, tag string, _ *fence.Entry, end int64, do func() (fence.Entry, error)) (fence.Entry, error) {
						swaps = append(swaps, fmt.Sprint(tag, " ", end))
						return do()
					}
				})
				reserves := s.count()
				next(t, a, "order") // asks for the next range
				time.Sleep(time.Second)
				next(t, a, "order") // asks again
				synctest.Wait()
				// The entry of order is high enough. It is written all the same (TestMergeAfterABackup).
				if want := []string{probeEntry + " 0", "cart 11", "order 11", "order 21"}; !slices.Equal(swaps, want) {
					t.Errorf("swaps %q, want %q", swaps, want)
				}
				if h := al.history(); !slices.Equal(h, []string{"+fence zk", "-fence zk"}) {
					t.Errorf("alarms %q", h)
				}
				if n := s.count() - reserves; n != 1 || first != 1 {
					t.Errorf("%d ranges reserved, want 1", n)
				}
				f.heal()
			})
		})
	}
}

// TestWithoutTheFenceForAWhile: ranges that were taken while no fence was
// configured are merged when there is one again.
func TestWithoutTheFenceForAWhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, f, d := newStore(row(10)), sharing(memory.NewFence()), newDisk()
		for _, cfg := range []segment.Config{fenced("a", f, nil), {NodeID: "a", FixedStep: true}} {
			a := node(t, s, d, cfg)
			drain(t, a, "order", 100)
			synctest.Wait()
			if cfg.ClusterFence == nil && merged(d) {
				t.Error("the disk says that the ranges are in the fence")
			}
			closeNode(t, a)
		}
		time.Sleep(25 * time.Hour) // no tag is recent, so nothing is loaded
		node(t, s, d, fenced("a", f, nil))
		synctest.Wait()
		if end := f.end(t, "order"); end != 201 {
			t.Errorf("cluster fence %d, want 201", end)
		}
	})
}

// TestDamagedFenceState only means that the fences are merged again.
func TestDamagedFenceState(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, f, d := newStore(row(10)), sharing(memory.NewFence()), newDisk()
		a := node(t, s, d, fenced("a", f, nil))
		drain(t, a, "order", 10)
		closeNode(t, a)
		good := d.content("cluster-fence")
		for i := range good {
			spoilt := slices.Clone(good)
			spoilt[i] ^= 0x10
			for _, content := range [][]byte{spoilt, good[:i]} {
				damaged := d.copy()
				damaged.files["cluster-fence"] = content
				a := node(t, s, damaged, fenced("a", f, nil))
				synctest.Wait()
				if !merged(damaged) {
					t.Fatalf("byte %d: not merged", i)
				}
				closeNode(t, a)
			}
		}
	})
}

// TestRestoredClusterFence: a fence that was set back to a backup while the node was
// down keeps its incarnation, and what the node has seen is forgotten. Its own marks
// tell at its first load, of any tag, and all of them are merged.
func TestRestoredClusterFence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, f, d, al := newStore(row(10), segment.Row{Tag: "cart", MaxID: 1, Step: 10}), memory.NewFence(), newDisk(), newAlarms()
		c := fenced("a", sharing(f), al)
		c.KeepUnused = true
		a := node(t, s, d, c)
		drain(t, a, "order", 100)
		next(t, a, "cart")
		synctest.Wait()
		closeNode(t, a)
		space, _, err := f.Open(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, tag := range []string{"order", "cart"} {
			e, ok, err := f.Read(t.Context(), space, tag)
			if err != nil || !ok {
				t.Fatal(ok, err)
			}
			if _, err := f.Swap(t.Context(), space, tag, &e, 5); err != nil {
				t.Fatal(err)
			}
		}

		time.Sleep(25 * time.Hour) // no tag is recent, so nothing is loaded
		a = node(t, s, d, c)
		next(t, a, "order")
		synctest.Wait()
		if h := al.history(); !slices.Equal(h, []string{"+fence zk", "-fence zk"}) {
			t.Errorf("alarms %q, want the fence once", h)
		}
		for _, tag := range []string{"order", "cart"} {
			if end, high := sharing(f).end(t, tag), a.Mark(tag).High; end < high {
				t.Errorf("tag %s: cluster fence %d, own fence %d", tag, end, high)
			}
		}
	})
}
