package fence_test

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/driver/datadir"
	"github.com/leaf-idgen/leaf/driver/memory"
	"github.com/leaf-idgen/leaf/segment/fence"
)

// noAlarms is for tests that do not look at alarms.
type noAlarms struct{}

func (noAlarms) Raise(leaf.Alarm)     {}
func (noAlarms) Clear(string, string) {}

// node is a fence and what ends it.
type node struct {
	*fence.Fence
	end func()
}

// open opens the fence of a node whose data directory is folder.
func open(t *testing.T, folder string, cluster fence.Cluster) node {
	t.Helper()
	disk, err := datadir.Open(folder)
	if err != nil {
		t.Fatal(err)
	}
	var tasks sync.WaitGroup
	f, err := fence.Open(fence.Config{
		Disk: disk, Node: disk.NodeID(), Runtime: leaf.SystemRuntime(), Logger: slog.New(slog.DiscardHandler), Alarms: noAlarms{},
		Go:      func(task func()) bool { tasks.Go(task); return true },
		Cluster: cluster, ClusterName: "memory", Timeout: time.Second, MaxCalls: 4, Abandoned: new(atomic.Int64),
	})
	if err != nil {
		t.Fatal(err)
	}
	f.Start()
	end := sync.OnceFunc(func() {
		f.Stop()
		tasks.Wait()
		if err := errors.Join(f.Close(context.Background()), disk.Close()); err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(end)
	return node{f, end}
}

func begin(t *testing.T, f node) *fence.Load {
	t.Helper()
	l, err := f.Begin(t.Context(), "order")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(l.End)
	return l
}

// take admits a range, as a load does that meets no other.
func take(t *testing.T, f node, lo, hi int64) fence.Held {
	t.Helper()
	held, err := begin(t, f).Admit(t.Context(), leaf.Range{Lo: lo, Hi: hi})
	if err != nil {
		t.Fatal(err)
	}
	return held
}

// TestDoor: what may happen between Begin and Admit of a node that holds [1, 21), and what
// Admit then says of [21, 31), which the database has just given it.
func TestDoor(t *testing.T) {
	next := leaf.Range{Lo: 21, Hi: 31}
	for _, c := range []struct {
		name    string
		between func(t *testing.T, a, b node)
		admit   leaf.Range
		is      error // nil: it is served
		seen    int64 // of the *RegressError; 0: it is none
	}{
		{"nothing", func(*testing.T, node, node) {}, next, nil, 0},
		{"the database went back behind this node", func(*testing.T, node, node) {}, leaf.Range{Lo: 11, Hi: 21}, nil, 21},
		{"another node was faster", func(t *testing.T, _, b node) { take(t, b, 31, 41) }, next, fence.ErrMoved, 0},
		{"this node told a repair what it holds", func(_ *testing.T, a, _ node) { a.Say("order") }, next, fence.ErrOvertaken, 0},
		{"this node heard of a repair", func(_ *testing.T, a, _ node) {
			a.Heed("order", a.Look(), func(fence.Mark, bool) fence.Mark { return fence.Mark{High: 100} }, leaf.Alarm{})
		}, next, fence.ErrOvertaken, 0},
		{"the tag was latched", func(_ *testing.T, a, _ node) { a.Latch("order", 50, leaf.Alarm{}) }, next, fence.ErrOvertaken, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			shared := memory.NewFence()
			a, b := open(t, t.TempDir(), shared), open(t, t.TempDir(), shared)
			take(t, a, 1, 21)
			l := begin(t, a)
			c.between(t, a, b)
			_, err := l.Admit(t.Context(), c.admit)
			regress, isRegress := errors.AsType[*fence.RegressError](err)
			switch {
			case c.seen > 0:
				if !isRegress || regress.Seen != c.seen {
					t.Errorf("Admit = %v, want a regress below %d", err, c.seen)
				}
			case !errors.Is(err, c.is) || (err == nil) != (c.is == nil):
				t.Errorf("Admit = %v, want %v", err, c.is)
			}
			if high := a.Mark("order").High; err == nil && high != c.admit.Hi {
				t.Errorf("mark %d after [%d, %d) was admitted", high, c.admit.Lo, c.admit.Hi)
			}
		})
	}
}

// TestRangeOfAnotherNode: the database forgot what another node took. Both the range and
// what follows it are refused, by a node that never served the tag.
func TestRangeOfAnotherNode(t *testing.T) {
	shared := memory.NewFence()
	a, b := open(t, t.TempDir(), shared), open(t, t.TempDir(), shared)
	take(t, a, 1, 21)
	_, err := begin(t, b).Admit(t.Context(), leaf.Range{Lo: 1, Hi: 11})
	if regress, ok := errors.AsType[*fence.RegressError](err); !ok || regress.Seen != 21 {
		t.Fatalf("Admit = %v, want a regress below 21", err)
	}
	b.Latch("order", 21, leaf.Alarm{})
	if _, err := b.Begin(t.Context(), "order"); !errors.Is(err, fence.ErrLatched) {
		t.Errorf("Begin of a latched tag = %v", err)
	}
	take(t, a, 21, 31) // the other node does not mind
}

// TestMarksOutliveTheProcess: what Admit and Settle said is on the disk.
func TestMarksOutliveTheProcess(t *testing.T) {
	folder := t.TempDir()
	a := open(t, folder, nil)
	take(t, a, 1, 21)
	a.Latch("cart", 50, leaf.Alarm{})
	if err := a.Settle(); err != nil {
		t.Fatal(err)
	}
	want := a.All()
	a.end()
	b := open(t, folder, nil)
	got := b.All()
	if len(got) != 2 || got["order"] != want["order"] || got["cart"] != want["cart"] || b.Latched() != 1 {
		t.Errorf("marks %+v, want %+v", got, want)
	}
}

// TestLower: a tail goes back only where both fences still stand at its end, and then a
// repair is told of that end until the store has answered.
func TestLower(t *testing.T) {
	shared := memory.NewFence()
	a, b := open(t, t.TempDir(), shared), open(t, t.TempDir(), shared)
	held := take(t, a, 1, 21)
	if err := a.Lower(t.Context(), "order", 5, leaf.Range{Lo: 5, Hi: 21}, held); err != nil {
		t.Fatal(err)
	}
	if m := a.Known("order"); m.High != 21 || a.Mark("order").High != 5 {
		t.Errorf("a repair is told %d, want 21; the mark is %d, want 5", m.High, a.Mark("order").High)
	}
	a.Returned("order")
	if m := a.Known("order"); m.High != 5 {
		t.Errorf("after the return a repair is told %d, want 5", m.High)
	}
	held = take(t, a, 5, 15)
	take(t, b, 15, 25)
	if err := a.Lower(t.Context(), "order", 10, leaf.Range{Lo: 10, Hi: 15}, held); !errors.Is(err, fence.ErrMoved) {
		t.Errorf("Lower although another node took a range since = %v", err)
	}
}
