package client_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/client"
	"github.com/leaf-idgen/leaf/discovery"
	"github.com/leaf-idgen/leaf/leafpb"
)

var errDown = errors.New("connection refused")

// cluster is nodes without a network. They give IDs from one counter, so an ID that
// is given twice was given twice by the client.
type cluster struct {
	issuer counter
	last   map[string]int64 // of entities

	sections map[string]*leafpb.Route // of entities; one that is not there has none

	mu    sync.Mutex
	nodes map[string]*fake
	list  []discovery.Node
	err   error // of List
}

func newCluster(nodes ...discovery.Node) *cluster {
	c := &cluster{nodes: make(map[string]*fake), list: nodes, last: make(map[string]int64)}
	for _, n := range nodes {
		c.add(n)
	}
	return c
}

// node returns an entry of a list; the ID stands for the address.
func node(id, zone string, weight int) discovery.Node {
	return discovery.Node{ID: id, Zone: zone, Weight: weight, GRPC: id + ":1"}
}

func (c *cluster) add(n discovery.Node) *fake {
	f := &fake{cluster: c, thawed: make(chan struct{})}
	close(f.thawed)
	c.nodes[n.ID] = f
	return f
}

// List implements client.Resolver.
func (c *cluster) List(context.Context) ([]discovery.Node, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.list), c.err
}

func (c *cluster) set(list []discovery.Node, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.list, c.err = list, err
}

func (c *cluster) dial(n discovery.Node) (client.Link, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	f := c.nodes[n.ID]
	if f == nil {
		return nil, leaf.BadField("address", n.GRPC, "is not in the fake cluster")
	}
	f.set(func(f *fake) { f.links++ })
	return &fakeLink{fake: f, flying: make(map[*client.Request]*flying)}, nil
}

// client returns one that is closed at the test's end, in the bubble.
func (c *cluster) client(t testing.TB, opts ...client.Option) *client.Client {
	t.Helper()
	return newClient(t, c, append([]client.Option{client.WithLinks(c.dial)}, opts...)...)
}

// fake is one node. Its fields are changed with set.
type fake struct {
	cluster *cluster

	mu       sync.Mutex
	down     bool          // connections are refused, those that exist break
	latency  time.Duration // of an answer
	draining bool
	answer   func(r *client.Request) ([]leaf.Range, error) // instead of IDs
	each     func(e leaf.SequenceRequest) error            // of an entity; nil: none fails
	hangs    string                                        // an entity for which no answer comes
	entities []string                                      // that were asked for
	requests []int                                         // the counts
	tags     []string
	thawed   chan struct{} // closed: it runs
	mute     bool          // it answers health checks only
	prompt   bool          // it answers within Ask
	links    int           // that are open
	checks   int           // health checks that came
}

func (f *fake) set(change func(*fake)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	change(f)
}

// freeze stops the node like SIGSTOP: connections stay, nothing answers.
func (f *fake) freeze() { f.set(func(f *fake) { f.thawed = make(chan struct{}) }) }

func (f *fake) thaw() { f.set(func(f *fake) { close(f.thawed) }) }

// asked returns how many requests came, and forgets them.
func (f *fake) asked() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	n := len(f.requests)
	f.requests = nil
	return n
}

// checked returns how many health checks came.
func (f *fake) checked() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.checks
}

// counts returns the sizes of the requests.
func (f *fake) counts() []int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.requests)
}

// fakeLink is a connection to a fake.
type fakeLink struct {
	*fake
	tasks sync.WaitGroup

	lock   sync.Mutex
	flying map[*client.Request]*flying
	closed bool
}

// flying is a request without an answer.
type flying struct {
	broken chan struct{} // closed: there will be none
	doomed bool          // abandoned when Sweep last came by
}

func (l *fakeLink) Ask(r *client.Request) {
	l.lock.Lock()
	defer l.lock.Unlock()
	f := &flying{broken: make(chan struct{})}
	if l.isPrompt() {
		r.Done(l.serve(r, f.broken))
		return
	}
	if l.closed {
		close(f.broken)
	} else {
		l.flying[r] = f
	}
	l.tasks.Go(func() {
		ranges, err := l.serve(r, f.broken)
		l.lock.Lock()
		delete(l.flying, r)
		l.lock.Unlock()
		r.Done(ranges, err)
	})
}

func (l *fakeLink) isPrompt() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.prompt
}

// cut breaks the requests that match.
func (l *fakeLink) cut(match func(*client.Request, *flying) bool) {
	for r, f := range l.flying {
		if match(r, f) {
			close(f.broken)
			delete(l.flying, r)
		}
	}
}

func (l *fakeLink) serve(r *client.Request, broken chan struct{}) ([]leaf.Range, error) {
	l.mu.Lock()
	down, latency, thawed, mute, answer := l.down, l.latency, l.thawed, l.mute, l.answer
	if !down {
		l.requests = append(l.requests, r.Count)
		l.tags = append(l.tags, r.Tag)
	}
	l.mu.Unlock()
	if down {
		return nil, client.Broken(errDown)
	}
	if mute {
		<-broken
		return nil, client.ErrGivenUp
	}
	select {
	case <-thawed:
	case <-broken:
		return nil, client.ErrGivenUp
	}
	if latency > 0 {
		select {
		case <-time.After(latency):
		case <-broken:
			return nil, client.ErrGivenUp
		}
	}
	if answer != nil {
		return answer(r)
	}
	return l.cluster.issuer.NextN(context.Background(), r.Tag, r.Count)
}

func (l *fakeLink) Sequence(ctx context.Context, _ bool, _ string, requests []leaf.SequenceRequest) (results []leaf.SequenceResult, route *leafpb.Route, err error) {
	l.mu.Lock()
	down, latency, thawed, mute, each := l.down, l.latency, l.thawed, l.mute, l.each
	for _, r := range requests {
		l.entities = append(l.entities, r.Entity)
		mute = mute || r.Entity == l.hangs
	}
	l.mu.Unlock()
	if mute {
		thawed = nil
	}
	if down {
		return nil, nil, client.Broken(errDown)
	}
	select {
	case <-thawed:
		time.Sleep(latency)
	case <-ctx.Done():
		return nil, nil, ctx.Err()
	}
	for _, r := range requests {
		if each != nil {
			if err := each(r); err != nil {
				results = append(results, leaf.SequenceResult{Err: err})
				continue
			}
		}
		results = append(results, l.cluster.entity(r))
	}
	if ctx.Err() != nil {
		return nil, nil, ctx.Err() // the numbers are lost
	}
	return results, l.cluster.sections[requests[0].Entity], nil
}

// entity gives an entity its next numbers.
func (c *cluster) entity(r leaf.SequenceRequest) leaf.SequenceResult {
	c.mu.Lock()
	defer c.mu.Unlock()
	lo := max(c.last[r.Entity]+1, r.From)
	c.last[r.Entity] = lo + int64(r.Count) - 1
	return leaf.SequenceResult{Range: leaf.Range{Lo: lo, Hi: lo + int64(r.Count)}}
}

// askedEntities returns which entities were asked for, and forgets them.
func (f *fake) askedEntities() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	asked := f.entities
	f.entities = nil
	return asked
}

func (l *fakeLink) Check(ctx context.Context) error {
	l.mu.Lock()
	l.checks++
	down, thawed, draining := l.down, l.thawed, l.draining
	l.mu.Unlock()
	if down {
		return client.Broken(errDown)
	}
	select {
	case <-thawed:
	case <-ctx.Done():
		return ctx.Err()
	}
	if draining {
		return client.ErrNotServing
	}
	return nil
}

func (l *fakeLink) Abandon(abandoned *client.Request) {
	l.lock.Lock()
	defer l.lock.Unlock()
	l.cut(func(r *client.Request, _ *flying) bool { return r == abandoned })
}

func (l *fakeLink) Held(*client.Request) error { return nil }

func (l *fakeLink) Sweep() {
	l.lock.Lock()
	defer l.lock.Unlock()
	l.cut(func(r *client.Request, f *flying) bool {
		was := f.doomed
		f.doomed = r.Abandoned()
		return was && f.doomed
	})
}

func (l *fakeLink) Reset() {
	l.lock.Lock()
	defer l.lock.Unlock()
	l.cut(func(*client.Request, *flying) bool { return true })
}

func (l *fakeLink) Close() {
	l.set(func(f *fake) { f.links-- })
	l.lock.Lock()
	l.closed = true
	l.cut(func(*client.Request, *flying) bool { return true })
	l.lock.Unlock()
	l.tasks.Wait()
}
