package segment_test

import (
	"context"
	"maps"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leaf-idgen/leaf/segment"
	"github.com/leaf-idgen/leaf/segment/fence"
)

// backedUp is a cluster fence whose entries can be saved and restored with their versions.
type backedUp struct {
	mu      sync.Mutex
	entries map[string]fence.Entry
}

func (f *backedUp) save() map[string]fence.Entry {
	f.mu.Lock()
	defer f.mu.Unlock()
	return maps.Clone(f.entries)
}

func (f *backedUp) restore(entries map[string]fence.Entry) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.entries = entries
}

func (f *backedUp) Open(context.Context) (string, bool, error) { return "incarnation", false, nil }

func (f *backedUp) Identify(context.Context, string, string) (string, error) { return "", nil }

func (f *backedUp) Read(_ context.Context, _, tag string) (fence.Entry, bool, error) {
	e, ok := f.save()[tag]
	return e, ok, nil
}

func (f *backedUp) Swap(_ context.Context, _, tag string, old *fence.Entry, end int64) (fence.Entry, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	now, ok := f.entries[tag]
	if ok != (old != nil) || ok && now != *old {
		return fence.Entry{}, fence.ErrMoved
	}
	f.entries[tag] = fence.Entry{End: end, Version: now.Version + 1}
	return f.entries[tag], nil
}

// cutOff is a cluster fence that a node cannot reach until the channel is closed.
type cutOff struct {
	fence.Cluster
	heals chan struct{}
}

func (f cutOff) Open(ctx context.Context) (string, bool, error) {
	select {
	case <-f.heals:
		return f.Cluster.Open(ctx)
	default:
		return "", false, errDown
	}
}

// TestMergeAfterABackup: the database lost commits while node a worked without the cluster fence, so
// a's range lies inside the unused tail of another node's range, whose entry a's merge has written
// anew. Then the fence is restored from a backup that has the entry as the other node wrote it. Once
// a has merged its marks again, the return of the tail must not lower the entry and the row.
func TestMergeAfterABackup(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, ids := &backedUp{entries: map[string]fence.Entry{}}, newLedger()
		s := newStore(row(100), segment.Row{Tag: "user", MaxID: 1, Step: 10})
		tail := node(t, s, nil, fenced("tail", f, nil))
		ids.add(t, "tail", next(t, tail, "order"))
		backup := f.save()

		heals := make(chan struct{})
		a := node(t, s, nil, degraded(cutOff{f, heals}, nil))
		s.Put(segment.Row{Tag: "order", MaxID: 51, Step: 50})
		ids.add(t, "a", next(t, a, "order"))
		close(heals)
		time.Sleep(time.Minute)
		drain(t, a, "user", 8)
		time.Sleep(time.Second)
		f.restore(backup)
		drain(t, a, "user", 10) // shows the node what the fence forgot
		time.Sleep(time.Minute)
		closeNode(t, tail)
		if end := f.save()["order"].End; end != 101 {
			t.Errorf("the cluster fence holds %d, and a node that has merged its marks twice holds numbers up to 101", end)
		}
		ids.issueOn(t, s, f, 100)
	})
}
