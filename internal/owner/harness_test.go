package owner_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/driver/memory"
	"github.com/leaf-idgen/leaf/internal/owner"
	"github.com/leaf-idgen/leaf/worker"
)

const slots = 8

// cluster is a registry with the nodes that share it, in a synctest bubble. Its watch looks at all
// nodes in every millisecond: no slot has two valid terms.
type cluster struct {
	t        *testing.T
	registry *memory.Registry
	nodes    []*node
}

func run(t *testing.T, f func(c *cluster)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		c := &cluster{t: t, registry: memory.NewRegistry()}
		defer func() {
			for _, n := range c.nodes {
				n.set(func(l *faults) { l.cut, l.onPut = true, nil })
				n.goOn()
				_ = n.Close(context.Background()) // as a crash: it reaches nothing any more
			}
		}()
		f(c)
	})
}

// tags has one tag for each slot.
var tags = func() (tags [slots]string) {
	for i := 0; ; i++ {
		full := true
		tag := fmt.Sprint("tag", i)
		if k := owner.Of(tag, slots); tags[k] == "" {
			tags[k] = tag
		}
		for _, t := range tags {
			full = full && t != ""
		}
		if full {
			return tags
		}
	}
}()

// node is one process and its way to the registry.
type node struct {
	*owner.Slots
	*line

	c       *cluster
	address string
	weight  atomic.Int64
	gate    atomic.Pointer[chan struct{}] // nil: the process runs
}

// standing is the runtime of a process that may stand still: whoever waits in it then goes on
// waiting. A test asks for its terms meanwhile, as the first goroutine does that runs again.
type standing struct {
	leaf.Runtime

	n *node
}

func (s standing) Wait(ctx context.Context, wake <-chan struct{}, d time.Duration) error {
	err := s.Runtime.Wait(ctx, wake, d)
	if gate := s.n.gate.Load(); gate != nil {
		<-*gate
	}
	return err
}

// stand lets the process stand still, and goOn lets it go on.
func (n *node) stand() {
	gate := make(chan struct{})
	n.gate.Store(&gate)
}

func (n *node) goOn() {
	if gate := n.gate.Swap(nil); gate != nil {
		close(*gate)
	}
}

// renewOnce lets the next write of the node be its last one.
func (n *node) renewOnce() {
	var puts atomic.Int64
	n.set(func(l *faults) {
		l.onPut = func(worker.Record) error {
			if puts.Add(1) > 1 {
				return errCut
			}
			return nil
		}
	})
}

// see is cluster.watch, and the node sees at once what others write.
func (n *node) see(d time.Duration) {
	n.c.t.Helper()
	for range d / (5 * time.Millisecond) {
		n.c.watch(5 * time.Millisecond)
		_ = n.Look(n.c.t.Context())
	}
}

// epoch is before every test: the clock of a bubble begins in 2000.
var epoch = time.Date(1999, 12, 31, 0, 0, 0, 0, time.UTC)

func (c *cluster) start(address string, change ...func(cfg *owner.Config)) *node {
	c.t.Helper()
	n := &node{c: c, address: address, line: &line{Records: c.registry.Open()}}
	n.weight.Store(100)
	cfg := owner.Config{
		Address: address, Namespace: "test", Slots: slots, Weight: func() int { return int(n.weight.Load()) },
		Elapsed: func() time.Duration { return time.Since(epoch) }, Runtime: standing{leaf.SystemRuntime(), n},
	}
	for _, f := range change {
		f(&cfg)
	}
	s, err := owner.New(n.line, cfg)
	if err != nil {
		c.t.Fatal(err)
	}
	n.Slots = s
	c.nodes = append(c.nodes, n)
	if err := s.Start(c.t.Context()); err != nil {
		c.t.Fatal(err)
	}
	return n
}

// owned returns the slots that the node may serve now.
func (n *node) owned() (owned []int) {
	for k, tag := range tags {
		if t, err := n.Term(tag); err == nil && t.Valid() {
			owned = append(owned, k)
		}
	}
	return owned
}

// check fails if two nodes may serve one slot.
func (c *cluster) check() (all int) {
	c.t.Helper()
	by := map[int]*node{}
	for _, n := range c.nodes {
		for _, k := range n.owned() {
			if by[k] != nil {
				c.t.Fatalf("slot %d has two owners, %s and %s", k, by[k].address, n.address)
			}
			by[k] = n
			all++
		}
	}
	return all
}

// watch looks for d.
func (c *cluster) watch(d time.Duration) {
	c.t.Helper()
	for end := time.Now().Add(d); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		c.check()
	}
}

// settle waits until every slot has an owner, and fails after limit.
func (c *cluster) settle(limit time.Duration) time.Duration {
	c.t.Helper()
	return c.until(limit, "all slots have an owner", func() bool { return c.check() == slots })
}

// until waits for what holds returns, and fails after limit.
func (c *cluster) until(limit time.Duration, what string, holds func() bool) time.Duration {
	c.t.Helper()
	began := time.Now()
	for c.check(); !holds(); c.check() {
		if time.Since(began) > limit {
			for _, n := range c.nodes {
				c.t.Logf("%s has %v", n.address, n.owned())
			}
			c.t.Fatalf("not within %v: %s", limit, what)
		}
		time.Sleep(5 * time.Millisecond)
	}
	return time.Since(began)
}

var errCut = errors.New("no route to host")

// line is a way to the registry, with faults.
type line struct {
	worker.Records

	mu sync.Mutex
	faults
}

// faults are what is wrong with a line.
type faults struct {
	cut   bool
	deaf  bool                        // writes arrive, and their answers do not
	onPut func(r worker.Record) error // before it
	done  func(r worker.Record)       // after it

	answersAfter time.Duration // how long the answer to a write takes
	listsAfter   time.Duration // how long a listing takes
	hang         int           // this many writes get no answer before their deadline
}

func (l *line) set(change func(*faults)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	change(&l.faults)
}

func (l *line) now() faults {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.faults
}

func (l *line) List(ctx context.Context) ([]worker.Record, error) {
	f := l.now()
	if f.cut {
		return nil, errCut
	}
	time.Sleep(f.listsAfter)
	return l.Records.List(ctx)
}

func (l *line) Namespace(ctx context.Context, want *worker.StoredNamespace) (*worker.StoredNamespace, error) {
	if l.now().cut {
		return nil, errCut
	}
	return l.Records.Namespace(ctx, want)
}

func (l *line) Put(ctx context.Context, r worker.Record) (string, error) {
	f := l.now()
	if f.onPut != nil {
		if err := f.onPut(r); err != nil {
			return "", err
		}
	}
	if f.cut {
		return "", errCut
	}
	if f.hang > 0 {
		l.set(func(f *faults) { f.hang-- })
		<-ctx.Done()
		return "", ctx.Err()
	}
	version, err := l.Records.Put(context.WithoutCancel(ctx), r)
	if f.done != nil && err == nil {
		f.done(r)
	}
	if f.answersAfter > 0 { // else the answer is there, although the process may have stood still beyond the deadline
		select {
		case <-time.After(f.answersAfter):
		case <-ctx.Done():
			return "", ctx.Err()
		}
	}
	if f.deaf && err == nil {
		return "", errCut
	}
	return version, err
}
