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
	"github.com/leaf-idgen/leaf/segment/fence"
)

// TestRepairIsCutShort: after each step that fails the tag stays latched, or its entry
// where it was, and the command can be run again.
func TestRepairIsCutShort(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, f, d := newStore(row(10)), sharing(memory.NewFence()), newDisk()
		a := node(t, s, d, fenced("a", f, nil))
		useUntilLatched := func() {
			t.Helper()
			for range 100 {
				if _, err := a.Next(t.Context(), "order"); err != nil {
					wantErr(t, err, leaf.ErrRegress)
					return
				}
			}
			t.Fatal("the tag never latched")
		}
		drain(t, a, "order", 95)
		synctest.Wait()
		s.Put(row(10))
		useUntilLatched()

		moves := 0
		f.set(func(f *shared) {
			f.onSwap = func(context.Context, string, *fence.Entry, int64, func() (fence.Entry, error)) (fence.Entry, error) {
				moves++
				return fence.Entry{}, fence.ErrMoved
			}
		})
		_, err := a.Repair(t.Context(), "order", 5000)
		if err == nil || !strings.Contains(err.Error(), "the tag is not released yet") || !errors.Is(err, leaf.ErrNotReady) || moves < 2 || moves > 100 {
			t.Errorf("a fence that moves without end, %d swaps: %v", moves, err)
		}
		f.heal()
		f.set(func(f *shared) {
			reads := 0
			f.onRead = func(_ context.Context, _ string, do func() (fence.Entry, bool, error)) (fence.Entry, bool, error) {
				if reads++; reads > 1 {
					return fence.Entry{}, false, errDown
				}
				return do()
			}
		})
		_, err = a.Repair(t.Context(), "order", 5000)
		wantErr(t, err, leaf.ErrNotReady)
		f.heal()
		time.Sleep(time.Minute)

		d.set(func(d *disk) {
			d.onWrite = func() error { return errors.New("no space left on device") }
			d.onReplace = func(string) error { return errors.New("no space left on device") }
		})
		_, err = a.Repair(t.Context(), "order", 5000)
		if err == nil || !strings.Contains(err.Error(), "its release is not on the disk yet") {
			t.Errorf("a full disk: %v", err)
		}
		d.set(func(d *disk) { d.onWrite, d.onReplace = nil, nil })
		if _, err = a.Repair(t.Context(), "order", 5000); err != nil {
			t.Fatal(err)
		}
		if id := next(t, a, "order"); id < 5000 {
			t.Errorf("ID %d after a repair above 5000", id)
		}
	})
}

// TestRepairWithoutTheFence: a node that goes on without the cluster fence cannot tell
// above which number a repair is safe.
func TestRepairWithoutTheFence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, f := newStore(row(10)), sharing(memory.NewFence())
		a := node(t, s, nil, degraded(f, nil))
		drain(t, a, "order", 5)
		f.breakDown()
		drain(t, a, "order", 50) // it has gone over to its own fence
		_, err := a.Repair(t.Context(), "order", 5000)
		wantErr(t, err, leaf.ErrNotReady)
		if got := s.maxID(t, "order"); got >= 5000 {
			t.Errorf("max_id = %d after a refused repair", got)
		}
	})
}
