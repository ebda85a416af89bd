package segment_test

import (
	"context"
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
