package segment_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/driver/memory"
	"github.com/leaf-idgen/leaf/segment"
	"github.com/leaf-idgen/leaf/segment/fence"
)

// TestRepairWhileAMergeIsOwed: the cluster fence has lost entries, and a node has noticed and
// not yet put its numbers back. While that node is silent, the fence does not speak for it, also
// where the node could not note on its disk that a merge is owed.
func TestRepairWhileAMergeIsOwed(t *testing.T) {
	t.Run("noted", func(t *testing.T) { repairWhileAMergeIsOwed(t, newDisk()) })
	t.Run("not noted", func(t *testing.T) {
		d := newDisk()
		merged := false
		d.onReplace = func(name string) error {
			if name == "cluster-fence" && merged {
				return errors.New("no space left on device")
			}
			merged = merged || name == "cluster-fence"
			return nil
		}
		repairWhileAMergeIsOwed(t, d)
	})
}

func repairWhileAMergeIsOwed(t *testing.T, d *disk) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		s, f := newStore(row(10)), memory.NewFence()
		mute, own := &board{store: s}, sharing(f)
		a := node(t, s, nil, fenced("a", sharing(f), nil))
		b := node(t, mute, d, fenced("b", own, nil))
		drain(t, a, "order", 5)
		synctest.Wait()
		last := drain(t, b, "order", 192)[191]
		time.Sleep(5 * time.Second)
		own.lower(t, "order", 51)
		own.set(func(f *shared) {
			f.onSwap = func(context.Context, string, *fence.Entry, int64, func() (fence.Entry, error)) (fence.Entry, error) {
				return fence.Entry{}, errDown
			}
		})
		last = max(last, drain(t, b, "order", 10)[9]) // asks for a range, and finds the entry too low
		time.Sleep(5 * time.Second)
		mute.change(func(b *board) {
			b.onNotices, b.onEnter = func() error { return errDown }, func() error { return errDown }
		})
		restored(s, 51)
		if maxID, err := a.Repair(t.Context(), "order", 0); !errors.Is(err, segment.ErrSilentNodes) {
			t.Errorf("Repair = %d, %v; b is silent and issued up to %d", maxID, err, last)
		}
		own.heal()
	})
}

// TestRepairWithoutAnEntry: the cluster fence has no entry of the tag, although a silent node
// says that all its ranges are in it. The fence does not speak for that node.
func TestRepairWithoutAnEntry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, f := newStore(row(10)), memory.NewFence()
		mute, gone := &board{store: s}, sharing(f)
		a := node(t, s, nil, fenced("a", gone, nil))
		b := node(t, mute, nil, fenced("b", sharing(f), nil))
		last := drain(t, b, "order", 195)[194]
		time.Sleep(5 * time.Second)
		mute.change(func(b *board) {
			b.onNotices, b.onEnter = func() error { return errDown }, func() error { return errDown }
		})
		space, _, err := f.Open(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		was, _, err := f.Read(t.Context(), space, "order")
		if err != nil {
			t.Fatal(err)
		}
		gone.set(func(f *shared) { // the entry is deleted
			f.onRead = func(_ context.Context, tag string, do func() (fence.Entry, bool, error)) (fence.Entry, bool, error) {
				if e, ok, err := do(); tag != "order" || e != was {
					return e, ok, err
				}
				return fence.Entry{}, false, nil
			}
			f.onSwap = func(ctx context.Context, tag string, old *fence.Entry, end int64, do func() (fence.Entry, error)) (fence.Entry, error) {
				if tag == "order" && old == nil {
					return f.Fence.Swap(ctx, space, tag, &was, end)
				}
				return do()
			}
		})
		restored(s, 51)
		if maxID, err := a.Repair(t.Context(), "order", 0); !errors.Is(err, segment.ErrSilentNodes) {
			t.Errorf("Repair = %d, %v; b is silent and issued up to %d", maxID, err, last)
		}
	})
}

// TestRepairCountsNodesThatLeft: a node that left said what it holds when it was asked
// before. A repair goes on above that.
func TestRepairCountsNodesThatLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStore(row(10))
		n, last := unevenly(t, s, s, s)
		if _, err := n[0].PlanRepair(t.Context(), "order", 0); err != nil {
			t.Fatal(err)
		}
		closeNode(t, n[1])
		restored(s, 51)
		if maxID, err := n[0].Repair(t.Context(), "order", 0); err != nil || maxID <= last {
			t.Errorf("Repair = %d, %v; the node that left issued up to %d", maxID, err, last)
		}
	})
}

// TestRepairOfANoticeThatNoNodeWrote: nodes ignore such a row, and so do not answer. The repair
// names the row, not the nodes.
func TestRepairOfANoticeThatNoNodeWrote(t *testing.T) {
	for name, n := range map[string]segment.Notice{
		"regress":  {Tag: "order", Regress: segment.MaxMaxID + 1},
		"repaired": {Tag: "order", Repaired: segment.MaxMaxID + 1},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newStore(row(10))
				all := three(t, s)
				time.Sleep(5 * time.Second)
				if err := s.Post(t.Context(), n); err != nil {
					t.Fatal(err)
				}
				_, err := all[0].Repair(t.Context(), "order", 0)
				if !errors.Is(err, leaf.ErrConflict) || !strings.Contains(err.Error(), "leaf_repair") {
					t.Errorf("%v; want ErrConflict that names the table", err)
				}
			})
		})
	}
}

// TestRepairOfAnAnswerThatNoNodeWrote: an answer above all numbers, of a node that is not there
// to replace it, is no reason to call the number space used up. The repair names the row.
func TestRepairOfAnAnswerThatNoNodeWrote(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStore(row(10))
		a := node(t, s, nil, segment.Config{NodeID: "a"})
		odd := segment.Answer{Tag: "order", Node: "gone", High: segment.MaxMaxID + 1}
		if err := s.Answer(t.Context(), odd); err != nil {
			t.Fatal(err)
		}
		_, err := a.Repair(t.Context(), "order", 0)
		if !errors.Is(err, leaf.ErrConflict) || !strings.Contains(err.Error(), "of node gone in leaf_repair_node") {
			t.Errorf("%v; want ErrConflict that names the row", err)
		}
		odd.High = 400
		if err := s.Answer(t.Context(), odd); err != nil {
			t.Fatal(err)
		}
		if maxID, err := a.Repair(t.Context(), "order", 0); err != nil || maxID != 401 {
			t.Errorf("Repair of the corrected row = %d, %v; want 401", maxID, err)
		}
	})
}
