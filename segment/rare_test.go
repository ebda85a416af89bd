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

// brokenDisk fails in one of the ways of a start.
type brokenDisk struct {
	*disk

	read, appendTo error
}

func (d *brokenDisk) ReadFile(name string) ([]byte, error) {
	if d.read != nil {
		return nil, d.read
	}
	return d.disk.ReadFile(name)
}

func (d *brokenDisk) Append(name string) (fence.AppendFile, error) {
	if d.appendTo != nil {
		return nil, d.appendTo
	}
	return d.disk.Append(name)
}

// TestDiskThatFailsAtTheStart: without a fence file that can be read and written there
// is no node.
func TestDiskThatFailsAtTheStart(t *testing.T) {
	failed := errors.New("input/output error")
	full := newDisk()
	full.onReplace = func(string) error { return failed }
	newer := newDisk()
	newer.files["fence"] = []byte(seal(strings.Replace(fenceHeader, `"version":1`, `"version":3`, 1)))
	for _, c := range []struct {
		name string
		disk fence.Disk
		want string
	}{
		{"read", &brokenDisk{disk: newDisk(), read: failed}, "read the fence file: input/output error"},
		{"write", full, "write the fence file: input/output error"},
		{"append", &brokenDisk{disk: newDisk(), appendTo: failed}, "open the fence file: input/output error"},
		{"newer program", newer, "of version 3, should be a leaf-fence of version 2"},
	} {
		t.Run(c.name, func(t *testing.T) {
			router, err := segment.NewRouter([]segment.NamedStore{{Name: "default", Store: newStore()}}, nil)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := segment.New(router, c.disk, segment.Config{NodeID: "node-1"}); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("New: %v; want %q", err, c.want)
			}
		})
	}
}

// TestStartThatEnds: Start returns when its context ends, and not at all after Close.
func TestStartThatEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStore(row(10))
		s.set(func(s *store) {
			s.onBind = func(ctx context.Context, _ func() error) error {
				<-ctx.Done()
				return ctx.Err()
			}
		})
		a := newNode(t, s, nil, segment.Config{})
		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		wantErr(t, a.Start(ctx), context.DeadlineExceeded)
		closeNode(t, a)
		wantErr(t, newClosed(t).Start(t.Context()), leaf.ErrNotReady)
	})
}

func newClosed(t *testing.T) *segment.Allocator {
	t.Helper()
	a := newNode(t, newStore(), nil, segment.Config{})
	closeNode(t, a)
	return a
}

// TestTagOfNoStore: a tag that no rule gives to a store is unknown to every method.
func TestTagOfNoStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rules := []segment.TagRule{{Pattern: "a*", Store: "a"}, {Pattern: "b*", Store: "b"}}
		router, err := segment.NewRouter([]segment.NamedStore{{Name: "a", Store: newStore()}, {Name: "b", Store: newStore()}}, rules)
		if err != nil {
			t.Fatal(err)
		}
		a := newRouted(t, router, newDisk(), segment.Config{})
		if err := a.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		wantErr(t, a.Bound("order"), leaf.ErrUnknownTag)
		wantErr(t, a.Refresh(t.Context(), "order"), leaf.ErrUnknownTag)
		_, err = a.Repair(t.Context(), "order", 1)
		wantErr(t, err, leaf.ErrUnknownTag)
		_, err = a.NextN(t.Context(), "order", 2)
		wantErr(t, err, leaf.ErrUnknownTag)
	})
}

// aliasing answers every look-up with the row of another tag, as a table with a
// collation that ignores case does.
type aliasing struct{ *store }

func (s aliasing) Lookup(ctx context.Context, _ string) (segment.Row, error) {
	return s.store.Lookup(ctx, "order")
}

// TestAliasedTag: a driver that forgot rule K does not make two tags one.
func TestAliasedTag(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := node(t, aliasing{newStore(row(10))}, nil, segment.Config{})
		_, err := a.Next(t.Context(), "ORDER")
		wantErr(t, err, leaf.ErrUnknownTag)
		if id := next(t, a, "order"); id != 1 {
			t.Errorf("first ID %d, want 1", id)
		}
	})
}

// TestViewOfAStoreThatIsDown: the status and the snapshot name what does not answer, in
// the order of the names, and management commands are told.
func TestViewOfAStoreThatIsDown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStore(row(10), segment.Row{Tag: "cart", MaxID: 1, Step: 10}, segment.Row{Tag: "a", MaxID: 1, Step: 10},
			segment.Row{Tag: "idle", MaxID: 1, Step: 10}, segment.Row{Tag: "idle too", MaxID: 1, Step: 10})
		a := newNode(t, s, nil, segment.Config{FixedStep: true, MaxWait: time.Second})
		wantErr(t, a.Bound("order"), leaf.ErrNotReady)
		if err := a.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := a.Bound("order"); err != nil {
			t.Errorf("Bound = %v after the start", err)
		}
		if name := a.Tag("order").Name(); name != "order" {
			t.Errorf("the handle of order is called %q", name)
		}
		drain(t, a, "order", 1)
		drain(t, a, "cart", 1)
		synctest.Wait()
		s.breakDown()
		for {
			if _, err := a.Next(t.Context(), "order"); err != nil {
				wantErr(t, err, leaf.ErrExhausted)
				break
			}
		}
		wantErr(t, a.Refresh(t.Context(), "order"), leaf.ErrNotReady)
		time.Sleep(2 * time.Minute) // a sync
		if st := a.Status(); !st.Ready || !slices.Contains(st.Reasons, `store "default" does not answer; tags are served from memory`) {
			t.Errorf("status %+v", st)
		}
		var seen []string
		for _, tag := range a.Snapshot() {
			seen = append(seen, tag.Tag+" "+tag.Problem)
		}
		if want := []string{"cart ", "order not_ready"}; !slices.Equal(seen, want) {
			t.Errorf("snapshot %q, want %q", seen, want)
		}

		// Two rows go at once.
		s.heal()
		if err := errors.Join(s.Delete(t.Context(), "cart"), s.Delete(t.Context(), "a")); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * time.Minute)
		for _, tag := range []string{"cart", "a"} {
			_, err := a.Next(t.Context(), tag)
			wantErr(t, err, leaf.ErrUnknownTag)
		}
		next(t, a, "order")
	})
}

// TestMissesAreBounded: what is remembered of tags that do not exist does not
// grow for ever, and forgetting it changes no answer.
func TestMissesAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := node(t, newStore(row(10)), nil, segment.Config{})
		for i := range 10_100 {
			_, err := a.NextN(t.Context(), fmt.Sprint("nobody-", i), 1)
			wantErr(t, err, leaf.ErrUnknownTag)
		}
		_, err := a.Next(t.Context(), "nobody-0")
		wantErr(t, err, leaf.ErrUnknownTag)
		next(t, a, "order")
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
