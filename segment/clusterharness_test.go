package segment_test

import (
	"context"
	"strings"
	"sync"
	"testing"

	"github.com/leaf-idgen/leaf/driver/memory"
	"github.com/leaf-idgen/leaf/segment"
	"github.com/leaf-idgen/leaf/segment/fence"
)

// shared decorates a cluster fence with faults, for one node. Each hook runs
// instead of the call and gets the call to make, or not, itself.
type shared struct {
	*memory.Fence
	mu     sync.Mutex
	onOpen func(ctx context.Context, do func() (string, bool, error)) (string, bool, error)
	onRead func(ctx context.Context, tag string, do func() (fence.Entry, bool, error)) (fence.Entry, bool, error)
	onSwap func(ctx context.Context, tag string, old *fence.Entry, end int64, do func() (fence.Entry, error)) (fence.Entry, error)
}

// sharing returns a node's access to f.
func sharing(f *memory.Fence) *shared { return &shared{Fence: f} }

func (f *shared) set(change func(*shared)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	change(f)
}

func (f *shared) Open(ctx context.Context) (string, bool, error) {
	f.mu.Lock()
	hook := f.onOpen
	f.mu.Unlock()
	do := func() (string, bool, error) { return f.Fence.Open(ctx) }
	if hook != nil {
		return hook(ctx, do)
	}
	return do()
}

func (f *shared) Read(ctx context.Context, space, tag string) (fence.Entry, bool, error) {
	f.mu.Lock()
	hook := f.onRead
	f.mu.Unlock()
	do := func() (fence.Entry, bool, error) { return f.Fence.Read(ctx, space, tag) }
	if hook != nil {
		return hook(ctx, tag, do)
	}
	return do()
}

func (f *shared) Swap(ctx context.Context, space, tag string, old *fence.Entry, end int64) (fence.Entry, error) {
	f.mu.Lock()
	hook := f.onSwap
	f.mu.Unlock()
	do := func() (fence.Entry, error) { return f.Fence.Swap(ctx, space, tag, old, end) }
	if hook != nil {
		return hook(ctx, tag, old, end, do)
	}
	return do()
}

// probeEntry is the entry that a node writes when it connects to the cluster fence, to see
// whether it may write there. Tests that compare the entries of tags skip it.
const probeEntry = "\x01leaf-probe"

// breakDown makes every call fail at once; heal ends it.
func (f *shared) breakDown() {
	f.set(func(f *shared) {
		f.onOpen = func(context.Context, func() (string, bool, error)) (string, bool, error) { return "", false, errDown }
		f.onRead = func(context.Context, string, func() (fence.Entry, bool, error)) (fence.Entry, bool, error) {
			return fence.Entry{}, false, errDown
		}
		f.onSwap = func(context.Context, string, *fence.Entry, int64, func() (fence.Entry, error)) (fence.Entry, error) {
			return fence.Entry{}, errDown
		}
	})
}

func (f *shared) heal() { f.set(func(f *shared) { f.onOpen, f.onRead, f.onSwap = nil, nil, nil }) }

// end returns what the fence holds of a tag, -1 if nothing.
func (f *shared) end(t testing.TB, tag string) int64 {
	t.Helper()
	space, _, err := f.Fence.Open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	e, ok, err := f.Fence.Read(t.Context(), space, tag)
	if err != nil {
		t.Fatal(err)
	}
	if !ok {
		return -1
	}
	return e.End
}

// fenced is the configuration of a node that shares f. Its ranges have the row's
// own step, so that a test can tell them apart.
func fenced(name string, f fence.Cluster, al *alarms) segment.Config {
	cfg := segment.Config{NodeID: name, ClusterFence: f, ClusterFenceName: "zk", FixedStep: true}
	if al != nil {
		cfg.Alarms = al
	}
	return cfg
}

// degraded is the same for node "a" with the policy degrade.
func degraded(f fence.Cluster, al *alarms) segment.Config {
	cfg := fenced("a", f, al)
	cfg.Degrade = true
	return cfg
}

// merged reports whether the state file says that the node's marks are in the fence.
func merged(d *disk) bool {
	content, err := d.ReadFile("cluster-fence")
	return err == nil && strings.Contains(string(content), `"merged":true`)
}

// lower sets the end of a tag's entry as a restore of the fence does.
func (f *shared) lower(t testing.TB, tag string, end int64) {
	t.Helper()
	space, _, err := f.Fence.Open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	old, _, err := f.Fence.Read(t.Context(), space, tag)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.Fence.Swap(t.Context(), space, tag, &old, end); err != nil {
		t.Fatal(err)
	}
}

// issueOn lets a new node under the cluster fence issue n IDs, or fewer if it refuses the row.
func (l *ledger) issueOn(t *testing.T, s segment.Store, f fence.Cluster, n int) {
	t.Helper()
	fresh := node(t, s, nil, fenced("fresh", f, nil))
	for range n {
		id, err := fresh.Next(t.Context(), "order")
		if err != nil {
			return
		}
		l.add(t, "fresh", id)
	}
}
