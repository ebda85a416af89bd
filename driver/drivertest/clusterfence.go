package drivertest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/segment"
	"github.com/leaf-idgen/leaf/segment/fence"
)

// FenceBackend is a cluster fence on a store without a namespace.
type FenceBackend struct {
	Fence fence.Cluster

	// Other returns a fence on the same namespace, as another node has it: with a
	// connection of its own.
	Other func(t *testing.T) fence.Cluster

	// Wipe deletes the namespace and everything in it, past the driver.
	Wipe func(t *testing.T)
}

// RunClusterFence holds a cluster fence to its contract. newBackend is called once
// per case.
func RunClusterFence(t *testing.T, newBackend func(t *testing.T) FenceBackend) {
	t.Helper()
	for _, c := range []struct {
		name string
		run  func(t *testing.T, b FenceBackend)
	}{
		{"Open is one for all and may be repeated", fenceOpen},
		{"Open by many at once", fenceOpenTogether},
		{"a missing entry is not zero", fenceMissing},
		{"the first ID stays", fenceIdentity},
		{"Swap from what is there, and from nothing else", fenceSwap},
		{"Swap by value A-B-A is refused", fenceABA},
		{"Swap by many at once", fenceTogether},
		{"creation by many at once", fenceCreateTogether},
		{"what one node wrote another reads at once", fenceFresh},
		{"ends at their limits", fenceEnds},
		{"tags byte by byte", fenceTags},
		{"bad requests", fenceBadRequest},
		{"context already done", fenceDone},
		{"an incarnation that never was", fenceForeign},
		{"wiped", fenceWiped},
		{"wiped and created anew", fenceReplaced},
	} {
		t.Run(c.name, func(t *testing.T) { c.run(t, newBackend(t)) })
	}
}

// fenceTag is a tag that an unescaped path would take apart.
const fenceTag = "a/b 订单%2F"

func openFence(t *testing.T, f fence.Cluster) string {
	t.Helper()
	space, _, err := f.Open(ctx(t))
	if err != nil || space == "" {
		t.Fatalf("Open = %q, %v", space, err)
	}
	return space
}

func swapFence(t *testing.T, f fence.Cluster, space, tag string, old *fence.Entry, end int64) fence.Entry {
	t.Helper()
	e, err := f.Swap(ctx(t), space, tag, old, end)
	if err != nil || e.End != end {
		t.Fatalf("Swap(%q, %+v, %d) = %+v, %v", tag, old, end, e, err)
	}
	return e
}

// wantFence fails unless the tag's entry is want, nil for none.
func wantFence(t *testing.T, f fence.Cluster, space, tag string, want *fence.Entry) {
	t.Helper()
	e, ok, err := f.Read(ctx(t), space, tag)
	switch {
	case err != nil:
		t.Fatalf("Read(%q): %v", tag, err)
	case want == nil && (ok || e != fence.Entry{}):
		t.Fatalf("Read(%q) = %+v, %v; want none", tag, e, ok)
	case want != nil && (!ok || e != *want):
		t.Fatalf("Read(%q) = %+v, %v; want %+v", tag, e, ok, *want)
	}
}

func fenceOpen(t *testing.T, b FenceBackend) {
	space, created, err := b.Fence.Open(ctx(t))
	if err != nil || space == "" || !created {
		t.Fatalf("first Open = %q, %v, %v; want a text, true", space, created, err)
	}
	e := swapFence(t, b.Fence, space, fenceTag, nil, 100)
	for name, f := range map[string]fence.Cluster{"same": b.Fence, "other": b.Other(t)} {
		again, created, err := f.Open(ctx(t))
		if err != nil || again != space || created {
			t.Errorf("%s node: Open = %q, %v, %v; want %q, false", name, again, created, err, space)
		}
		wantFence(t, f, space, fenceTag, &e)
	}
}

func fenceOpenTogether(t *testing.T, b FenceBackend) {
	const nodes = 8
	var spaces [nodes]string
	var creators [nodes]bool
	var all sync.WaitGroup
	for i := range nodes {
		f := b.Other(t)
		all.Go(func() {
			var err error
			if spaces[i], creators[i], err = f.Open(ctx(t)); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	n := 0
	for i := range nodes {
		if spaces[i] != spaces[0] || spaces[i] == "" {
			t.Errorf("incarnations %q", spaces)
		}
		if creators[i] {
			n++
		}
	}
	if n != 1 {
		t.Errorf("%d nodes say that they created the namespace, want 1", n)
	}
}

func fenceMissing(t *testing.T, b FenceBackend) {
	space := openFence(t, b.Fence)
	wantFence(t, b.Fence, space, fenceTag, nil)
	e := swapFence(t, b.Fence, space, fenceTag, nil, 0)
	wantFence(t, b.Fence, space, fenceTag, &e)
	wantFence(t, b.Fence, space, fenceTag+"x", nil)
}

func fenceIdentity(t *testing.T, b FenceBackend) {
	space := openFence(t, b.Fence)
	wants := func(f fence.Cluster, space, id, want string) {
		t.Helper()
		if found, err := f.Identify(ctx(t), space, id); found != want || err != nil {
			t.Fatalf("Identify(%q) = %q, %v; want %q", id, found, err, want)
		}
	}
	wants(b.Fence, space, "", "")
	const nodes = 4
	var found [nodes]string
	var all sync.WaitGroup
	for i := range nodes {
		f := b.Other(t)
		all.Go(func() {
			var err error
			if found[i], err = f.Identify(ctx(t), space, fmt.Sprint("cluster", i)); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	first := found[0]
	if !strings.HasPrefix(first, "cluster") {
		t.Fatalf("a namespace without an ID got %q", first)
	}
	for _, f := range []fence.Cluster{b.Fence, b.Other(t)} {
		wants(f, space, "", first)
		wants(f, space, "other", first)
	}
	if found != [nodes]string{first, first, first, first} {
		t.Errorf("the nodes found %q; want one ID", found)
	}
	e := swapFence(t, b.Fence, space, fenceTag, nil, 100)
	if again := openFence(t, b.Fence); again != space {
		t.Errorf("Open = %q after the namespace got an ID; want %q", again, space)
	}
	wantFence(t, b.Other(t), space, fenceTag, &e)
	b.Wipe(t)
	if found, err := b.Fence.Identify(ctx(t), space, "other"); !errors.Is(err, fence.ErrReplaced) {
		t.Errorf("Identify of a wiped namespace = %q, %v; want ErrReplaced", found, err)
	}
	second := openFence(t, b.Fence)
	wants(b.Fence, second, "", "")
	wants(b.Fence, second, "second", "second")
}

func fenceSwap(t *testing.T, b FenceBackend) {
	space := openFence(t, b.Fence)
	refused := func(old *fence.Entry, now *fence.Entry) {
		t.Helper()
		if e, err := b.Fence.Swap(ctx(t), space, fenceTag, old, 999); !errors.Is(err, fence.ErrMoved) {
			t.Fatalf("Swap from %+v while it is %+v = %+v, %v; want ErrMoved", old, now, e, err)
		}
		wantFence(t, b.Fence, space, fenceTag, now)
	}
	refused(&fence.Entry{}, nil)
	refused(&fence.Entry{End: 5, Version: 5}, nil)
	first := swapFence(t, b.Fence, space, fenceTag, nil, 100)
	refused(nil, &first)
	second := swapFence(t, b.Fence, space, fenceTag, &first, 200)
	if second.Version <= first.Version {
		t.Errorf("versions %d, then %d; want growing ones", first.Version, second.Version)
	}
	refused(nil, &second)
	refused(&first, &second)
	refused(&fence.Entry{End: second.End, Version: second.Version + 1}, &second)
	refused(&fence.Entry{End: second.End + 1, Version: second.Version}, &second)
	lower := swapFence(t, b.Fence, space, fenceTag, &second, 150)
	same := swapFence(t, b.Fence, space, fenceTag, &lower, 150)
	if same.Version <= lower.Version {
		t.Errorf("a Swap to the same end kept version %d; it must be a new one", same.Version)
	}
	refused(&lower, &same)
	wantFence(t, b.Other(t), space, fenceTag, &same)
}

func fenceABA(t *testing.T, b FenceBackend) {
	space := openFence(t, b.Fence)
	first := swapFence(t, b.Fence, space, fenceTag, nil, 100)
	second := swapFence(t, b.Fence, space, fenceTag, &first, 200)
	third := swapFence(t, b.Fence, space, fenceTag, &second, 100)
	if _, err := b.Fence.Swap(ctx(t), space, fenceTag, &first, 300); !errors.Is(err, fence.ErrMoved) {
		t.Fatalf("Swap from an old version of the same end: %v; want ErrMoved", err)
	}
	wantFence(t, b.Fence, space, fenceTag, &third)
}

// fenceTogether counts: each of the increments of all nodes must show in the end.
func fenceTogether(t *testing.T, b FenceBackend) {
	const nodes, each = 4, 10
	space := openFence(t, b.Fence)
	swapFence(t, b.Fence, space, fenceTag, nil, 0)
	var all sync.WaitGroup
	for range nodes {
		f := b.Other(t)
		all.Go(func() {
			for done := 0; done < each; {
				e, ok, err := f.Read(ctx(t), space, fenceTag)
				if err != nil || !ok {
					t.Errorf("Read = %+v, %v, %v", e, ok, err)
					return
				}
				switch _, err = f.Swap(ctx(t), space, fenceTag, &e, e.End+1); {
				case err == nil:
					done++
				case !errors.Is(err, fence.ErrMoved):
					t.Errorf("Swap: %v", err)
					return
				}
			}
		})
	}
	all.Wait()
	if e, _, err := b.Fence.Read(ctx(t), space, fenceTag); err != nil || e.End != nodes*each {
		t.Errorf("after %d increments the entry is %+v, %v", nodes*each, e, err)
	}
}

func fenceCreateTogether(t *testing.T, b FenceBackend) {
	const nodes = 8
	space := openFence(t, b.Fence)
	var mu sync.Mutex
	var winners []fence.Entry
	var all sync.WaitGroup
	for i := range nodes {
		f := b.Other(t)
		all.Go(func() {
			e, err := f.Swap(ctx(t), space, fenceTag, nil, int64(i+1))
			switch {
			case err == nil:
				mu.Lock()
				winners = append(winners, e)
				mu.Unlock()
			case !errors.Is(err, fence.ErrMoved):
				t.Errorf("Swap: %v", err)
			}
		})
	}
	all.Wait()
	if len(winners) != 1 {
		t.Fatalf("%d of %d creations succeeded: %+v", len(winners), nodes, winners)
	}
	wantFence(t, b.Fence, space, fenceTag, &winners[0])
}

func fenceFresh(t *testing.T, b FenceBackend) {
	space := openFence(t, b.Fence)
	nodes := []fence.Cluster{b.Fence, b.Other(t), b.Other(t)}
	e := swapFence(t, nodes[0], space, fenceTag, nil, 1)
	for i := range 30 {
		e = swapFence(t, nodes[i%3], space, fenceTag, &e, e.End+1)
		wantFence(t, nodes[(i+1)%3], space, fenceTag, &e)
		wantFence(t, nodes[(i+2)%3], space, fenceTag, &e)
	}
}

func fenceEnds(t *testing.T, b FenceBackend) {
	space := openFence(t, b.Fence)
	var old *fence.Entry
	for _, end := range []int64{0, 1, 1 << 31, 1<<53 + 1, segment.MaxMaxID, 0} {
		e := swapFence(t, b.Fence, space, fenceTag, old, end)
		wantFence(t, b.Other(t), space, fenceTag, &e)
		old = &e
	}
}

func fenceTags(t *testing.T, b FenceBackend) {
	space := openFence(t, b.Fence)
	tags := []string{
		"order", "Order", "order ", " order", "order/", "/order", "/", "//", ".", "..", "a/../order", "%2F", "%252F", "%", "\\", "'\"`", "*",
		"\x01\x1f\x7f", "a\nb", "\ufeff", "\u00e9", "e\u0301", "订单", "😀", "\ufffd", "\u2028", "-", "_", "~", "+", "zookeeper",
		strings.Repeat("x", leaf.MaxTagLen), strings.Repeat("/", leaf.MaxTagLen), strings.Repeat("😀", leaf.MaxTagLen),
	}
	for i, tag := range tags {
		wantFence(t, b.Fence, space, tag, nil)
		swapFence(t, b.Fence, space, tag, nil, int64(i))
	}
	other := b.Other(t)
	for i, tag := range tags {
		e, ok, err := other.Read(ctx(t), space, tag)
		if err != nil || !ok || e.End != int64(i) {
			t.Errorf("Read(%q) = %+v, %v, %v; want end %d", tag, e, ok, err, i)
		}
	}
}

func fenceBadRequest(t *testing.T, b FenceBackend) {
	space := openFence(t, b.Fence)
	for _, tag := range []string{"", "a\x00b", "a\xff", strings.Repeat("x", leaf.MaxTagLen+1)} {
		if _, _, err := b.Fence.Read(ctx(t), space, tag); !errors.Is(err, leaf.ErrBadRequest) {
			t.Errorf("Read(%.20q): %v; want ErrBadRequest", tag, err)
		}
		if _, err := b.Fence.Swap(ctx(t), space, tag, nil, 1); !errors.Is(err, leaf.ErrBadRequest) {
			t.Errorf("Swap(%.20q): %v; want ErrBadRequest", tag, err)
		}
	}
	for _, end := range []int64{-1, segment.MaxMaxID + 1} {
		if _, err := b.Fence.Swap(ctx(t), space, fenceTag, nil, end); !errors.Is(err, leaf.ErrBadRequest) {
			t.Errorf("Swap to %d: %v; want ErrBadRequest", end, err)
		}
	}
	wantFence(t, b.Fence, space, fenceTag, nil)
}

func fenceDone(t *testing.T, b FenceBackend) {
	space := openFence(t, b.Fence)
	done, cancel := context.WithCancel(t.Context())
	cancel()
	_, _, errOpen := b.Fence.Open(done)
	_, _, errRead := b.Fence.Read(done, space, fenceTag)
	_, errSwap := b.Fence.Swap(done, space, fenceTag, nil, 1)
	for call, err := range map[string]error{"Open": errOpen, "Read": errRead, "Swap": errSwap} {
		if !errors.Is(err, context.Canceled) {
			t.Errorf("%s with a context that is done: %v", call, err)
		}
	}
	wantFence(t, b.Fence, space, fenceTag, nil)
}

// wantReplaced fails unless nothing can be read from or written to space.
func wantReplaced(t *testing.T, f fence.Cluster, space string, old fence.Entry) {
	t.Helper()
	for _, tag := range []string{fenceTag, "other"} {
		if e, ok, err := f.Read(ctx(t), space, tag); !errors.Is(err, fence.ErrReplaced) {
			t.Errorf("Read(%q) from a lost incarnation = %+v, %v, %v; want ErrReplaced", tag, e, ok, err)
		}
		for name, from := range map[string]*fence.Entry{"creation": nil, "zero": {}, "change": &old} {
			e, err := f.Swap(ctx(t), space, tag, from, 7)
			if !errors.Is(err, fence.ErrReplaced) && !errors.Is(err, fence.ErrMoved) {
				t.Errorf("%s of %q in a lost incarnation = %+v, %v; want ErrReplaced or ErrMoved", name, tag, e, err)
			}
		}
	}
}

func fenceForeign(t *testing.T, b FenceBackend) {
	wantReplaced(t, b.Fence, "nobody", fence.Entry{}) // before the namespace exists
	space := openFence(t, b.Fence)
	for _, foreign := range []string{"nobody", "", space + "x", strings.ToLower(space) + "/.."} {
		wantReplaced(t, b.Fence, foreign, fence.Entry{})
	}
	wantFence(t, b.Fence, space, fenceTag, nil)
}

func fenceWiped(t *testing.T, b FenceBackend) {
	space := openFence(t, b.Fence)
	e := swapFence(t, b.Fence, space, fenceTag, nil, 100)
	b.Wipe(t)
	for name, f := range map[string]fence.Cluster{"same": b.Fence, "other": b.Other(t)} {
		t.Run(name+" node", func(t *testing.T) { wantReplaced(t, f, space, e) })
	}
}

// fenceReplaced: the new namespace has entries with the versions of the old one,
// where the store counts them anew.
func fenceReplaced(t *testing.T, b FenceBackend) {
	space := openFence(t, b.Fence)
	old := swapFence(t, b.Fence, space, fenceTag, nil, 100)
	b.Wipe(t)
	second, created, err := b.Other(t).Open(ctx(t))
	if err != nil || !created || second == space || second == "" {
		t.Fatalf("Open after the wipe = %q, %v, %v; want another text than %q, and created", second, created, err, space)
	}
	if again := openFence(t, b.Fence); again != second {
		t.Fatalf("the two nodes opened %q and %q", second, again)
	}
	wantFence(t, b.Fence, second, fenceTag, nil)
	e := swapFence(t, b.Fence, second, fenceTag, nil, 500)
	wantReplaced(t, b.Fence, space, old)
	wantFence(t, b.Fence, second, fenceTag, &e)
	b.Wipe(t)
	if third := openFence(t, b.Fence); third == space || third == second {
		t.Fatalf("incarnation %q came back", third)
	}
}
