package segment_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/driver/memory"
	"github.com/leaf-idgen/leaf/segment"
	"github.com/leaf-idgen/leaf/segment/fence"
)

// TestRangeUnderWayBesideAMerge: a load has moved the cluster fence, and its reply is late.
// Meanwhile the fence forgets that entry, and the node merges its marks, without the range.
// The node must not serve the range: once all nodes have merged, the fence holds every range,
// and protects it when the database loses commits.
func TestRangeUnderWayBesideAMerge(t *testing.T) {
	user := segment.Row{Tag: "user", MaxID: 1, Step: 10}
	tests := []struct {
		name   string
		forget func(t *testing.T, f *shared)
	}{
		{"the fence is wiped", func(_ *testing.T, f *shared) { f.Wipe() }},
		{"the fence is restored from a backup", func(t *testing.T, f *shared) {
			f.lower(t, "order", 11)
			f.lower(t, "user", 1)
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, f, ids := newStore(row(10), user), sharing(memory.NewFence()), newLedger()
				a := node(t, s, nil, fenced("a", f, nil))
				drain(t, a, "user", 5)
				ids.add(t, "a", drain(t, a, "order", 10)...)
				synctest.Wait()
				f.set(func(f *shared) {
					f.onSwap = func(_ context.Context, tag string, _ *fence.Entry, _ int64, do func() (fence.Entry, error)) (fence.Entry, error) {
						e, err := do()
						if tag == "order" && e.End == 31 {
							time.Sleep(1500 * time.Millisecond)
						}
						return e, err
					}
				})
				ids.add(t, "a", drain(t, a, "order", 9)...) // and asks for [21,31)
				time.Sleep(100 * time.Millisecond)
				if end := f.end(t, "order"); end != 31 {
					t.Fatalf("the fence holds %d, want 31: the range under way", end)
				}
				tt.forget(t, f)
				drain(t, a, "user", 10) // shows the node what the fence forgot
				time.Sleep(time.Second)
				if end := f.end(t, "order"); end != 21 {
					t.Fatalf("the fence holds %d after the merge, want 21", end)
				}
				time.Sleep(10 * time.Second)
				ids.add(t, "a", drain(t, a, "order", 2)...) // the second is the first of a new range
				s.Put(segment.Row{Tag: "order", MaxID: 21, Step: 10})
				b := node(t, s, nil, fenced("b", sharing(f.Fence), nil))
				_, err := b.Next(t.Context(), "order")
				wantErr(t, err, leaf.ErrRegress)
			})
		})
	}
}

// TestOneMergeForAllTags: a restored fence is behind what the node saw of every tag. The load
// that notices it first leads to a merge of all tags, and the later loads of the others to none.
func TestOneMergeForAllTags(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const tags, loads, lost = 30, 12, 10 // each merge writes all entries anew, so one loss is soon made up for
		var rows []segment.Row
		for i := range tags {
			rows = append(rows, segment.Row{Tag: fmt.Sprintf("t%02d", i), MaxID: 1, Step: 10})
		}
		f, al := sharing(memory.NewFence()), newAlarms()
		a := node(t, newStore(rows...), nil, fenced("a", f, al))
		for _, r := range rows {
			drain(t, a, r.Tag, loads*10)
		}
		synctest.Wait()
		space, _, err := f.Fence.Open(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		var merges atomic.Int64
		f.set(func(f *shared) { // the versions are those of a backup, and count on from there
			f.onRead = func(_ context.Context, _ string, do func() (fence.Entry, bool, error)) (fence.Entry, bool, error) {
				e, ok, err := do()
				e.Version -= lost
				return e, ok, err
			}
			f.onSwap = func(ctx context.Context, tag string, old *fence.Entry, end int64, _ func() (fence.Entry, error)) (fence.Entry, error) {
				if tag == probeEntry {
					merges.Add(1)
				}
				if old != nil {
					old = &fence.Entry{End: old.End, Version: old.Version + lost}
				}
				e, err := f.Fence.Swap(ctx, space, tag, old, end)
				e.Version -= lost
				return e, err
			}
		})
		for range 2 {
			for _, r := range rows {
				drain(t, a, r.Tag, 10)
			}
			time.Sleep(time.Second)
		}
		// A load that looks at the same time can tell of its loss during the merge, or after it.
		if n := merges.Load(); n < 1 || n > 2 {
			t.Errorf("%d merges, want 1 or 2", n)
		}
		once := []string{"+fence zk", "-fence zk"}
		if h := al.history(); !slices.Equal(h, once) && !slices.Equal(h, slices.Concat(once, once)) {
			t.Errorf("alarms %q", h)
		}
	})
}

// TestFenceWithoutIncarnation: a cluster fence that cannot say which one it is is one
// that does not answer.
func TestFenceWithoutIncarnation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, f := newStore(row(10)), sharing(memory.NewFence())
		f.set(func(f *shared) {
			f.onOpen = func(context.Context, func() (string, bool, error)) (string, bool, error) { return "", false, nil }
		})
		a := node(t, s, nil, fenced("a", f, nil))
		_, err := a.Next(t.Context(), "order")
		wantErr(t, err, leaf.ErrNotReady)
		if st := a.Status(); st.Ready || !strings.Contains(strings.Join(st.Reasons, ""), `cluster fence "zk" has not answered`) {
			t.Errorf("status %+v", st)
		}
		f.heal()
		next(t, a, "order")
	})
}

// TestMergeThatCannotBeRemembered: no number is served before the disk knows that this
// node's fences are in the cluster fence.
func TestMergeThatCannotBeRemembered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, f, d := newStore(row(10)), sharing(memory.NewFence()), newDisk()
		d.onReplace = func(name string) error {
			if name == "cluster-fence" {
				return errors.New("no space left on device")
			}
			return nil
		}
		cfg := fenced("a", f, nil)
		cfg.MaxWait = time.Second
		a := node(t, s, d, cfg)
		for range 5 {
			_, err := a.Next(t.Context(), "order")
			wantErr(t, err, leaf.ErrNotReady)
		}
		d.set(func(d *disk) { d.onReplace = nil })
		time.Sleep(time.Minute)
		next(t, a, "order")
		if !merged(d) {
			t.Error("the merge is not remembered")
		}
	})
}

// TestLateWordOfAWipedFence: a reply about an incarnation of the cluster fence arrives after
// the fence was wiped and the node has merged its marks into the next incarnation. The reply
// proves no loss there: no alarm is raised that nothing would end.
func TestLateWordOfAWipedFence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, f, al := newStore(row(10), segment.Row{Tag: "cart", MaxID: 1, Step: 10}), sharing(memory.NewFence()), newAlarms()
		a := node(t, s, nil, fenced("a", f, al))
		next(t, a, "order")
		next(t, a, "cart")
		synctest.Wait()
		reached, release := make(chan struct{}), make(chan struct{})
		f.set(func(f *shared) {
			f.onRead = func(_ context.Context, tag string, do func() (fence.Entry, bool, error)) (fence.Entry, bool, error) {
				if tag != "order" {
					return do()
				}
				f.heal()
				close(reached)
				<-release
				return fence.Entry{}, false, nil // an operator has begun to delete entries
			}
		})
		drain(t, a, "order", 5) // asks for the next range
		<-reached
		f.Wipe()
		drain(t, a, "cart", 25) // notices
		synctest.Wait()
		al.want(t)
		close(release)
		time.Sleep(time.Hour)
		drain(t, a, "order", 25)
		al.want(t)
	})
}

// TestMergeThatAKillEnds: a node finds that the cluster fence was restored from a backup, and is
// killed before it has merged its marks of all tags. The next process must merge them: only this
// node has them, and its alarm has said that it merges them.
func TestMergeThatAKillEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, f, d, al := newStore(row(10), segment.Row{Tag: "user", MaxID: 1, Step: 10}), sharing(memory.NewFence()), newDisk(), newAlarms()
		a := node(t, s, d, fenced("a", f, al))
		drain(t, a, "order", 15)
		drain(t, a, "user", 5)
		synctest.Wait()
		f.lower(t, "order", 11)
		f.lower(t, "user", 1)
		says := ""
		f.set(func(f *shared) {
			f.onSwap = func(_ context.Context, tag string, _ *fence.Entry, _ int64, do func() (fence.Entry, error)) (fence.Entry, error) {
				if tag == "order" {
					says = cmp.Or(says, al.do("fence", "zk"))
					return fence.Entry{}, errDown
				}
				return do()
			}
		})
		drain(t, a, "user", 10) // shows the node what the fence forgot
		time.Sleep(time.Second)
		al.want(t, "fence zk")
		if !strings.Contains(says, "stop each whose data directory survives its process") || !strings.Contains(says, "Let the others run") {
			t.Errorf("a node that forgets what it is to merge may be stopped: the alarm says %q", says)
		}
		killed := d.copy()
		f.breakDown() // for the process that is killed

		node(t, s, killed, fenced("a", sharing(f.Fence), nil))
		time.Sleep(time.Second)
		s.Put(segment.Row{Tag: "order", MaxID: 11, Step: 10})
		b := node(t, s, nil, fenced("b", sharing(f.Fence), nil))
		_, err := b.Next(t.Context(), "order")
		wantErr(t, err, leaf.ErrRegress)
	})
}
