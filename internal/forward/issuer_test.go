package forward_test

import (
	"cmp"
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/internal/forward"
	"github.com/leaf-idgen/leaf/internal/owner"
)

// cluster is one tag that is always issued by its owner. What a node believes is the route that it
// has read last.
type cluster struct {
	mu    sync.Mutex
	owner string
	next  int64
	looks int
	heard int64
	nodes map[string]*node

	onAsk      func(ctx context.Context, to string) error // before a node answers another one; nil: nothing
	onAnswered func()                                     // after it; nil: nothing
	onCount    func(n int) error                          // before a node answers a call for n IDs; nil: nothing
	largest    int                                        // what a node was asked for
}

type node struct {
	c        *cluster
	name     string
	believed string
}

func newCluster(owner string, names ...string) *cluster {
	c := &cluster{owner: owner, next: 1, nodes: map[string]*node{}}
	for _, name := range names {
		c.nodes[name] = &node{c: c, name: name, believed: owner}
	}
	return c
}

func (c *cluster) own(name string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.owner = name
}

// Next and NextN are those of the node's engine, which knows at once that it does not own the tag any more, and
// that it owns it when it has looked.
func (n *node) Next(ctx context.Context, tag string) (int64, error) {
	got, err := n.NextN(ctx, tag, 1)
	if err != nil {
		return 0, err
	}
	return got[0].Lo, nil
}

func (n *node) NextN(_ context.Context, tag string, count int) ([]leaf.Range, error) {
	n.c.mu.Lock()
	defer n.c.mu.Unlock()
	switch {
	case tag != "order":
		return nil, leaf.ErrUnknownTag
	case n.believed != n.name || n.c.owner != n.name:
		return nil, &owner.ElsewhereError{Tag: tag, Route: owner.Route{Address: n.believed}}
	}
	n.c.next += int64(count)
	return []leaf.Range{{Lo: n.c.next - int64(count), Hi: n.c.next}}, nil
}

func (n *node) look(context.Context, string) error {
	n.c.mu.Lock()
	defer n.c.mu.Unlock()
	n.c.looks++
	n.believed = n.c.owner
	return nil
}

// remote takes calls to the other nodes of the cluster.
type remote struct{ c *cluster }

func (r remote) NextN(ctx context.Context, to owner.Route, tag string, n int) ([]leaf.Range, error) {
	if r.c.onAsk != nil {
		if err := r.c.onAsk(ctx, to.Address); err != nil {
			return nil, err
		}
	}
	if r.c.onCount != nil {
		if err := r.c.onCount(n); err != nil {
			return nil, err
		}
	}
	if r.c.onAnswered != nil {
		defer r.c.onAnswered()
	}
	r.c.mu.Lock()
	r.c.largest = max(r.c.largest, n)
	r.c.mu.Unlock()
	of := r.c.nodes[to.Address]
	return forward.Here(of, of.look).NextN(ctx, tag, n)
}

func (remote) NextEach(context.Context, owner.Route, string, []leaf.SequenceRequest) ([]leaf.SequenceResult, error) {
	return nil, leaf.ErrDisabled
}

// issuer is that of node a.
func (c *cluster) issuer() *forward.Issuer {
	n := c.nodes["a"]
	return forward.New(forward.Config{
		Local: n, Remote: remote{c}, Self: "a", Look: n.look, MaxWait: 5 * time.Second, Attempt: time.Second,
		Heard: func(_ string, end int64) {
			c.mu.Lock()
			defer c.mu.Unlock()
			c.heard = end
		},
	})
}

func TestCalls(t *testing.T) {
	hangs := func(ctx context.Context, to string) error {
		if to != "b" {
			return nil
		}
		<-ctx.Done()
		return leaf.ErrNotReady
	}
	for _, tt := range []struct {
		name   string
		owner  string
		happen func(c *cluster)
		tag    string
		takes  time.Duration // at most
		want   error         // nil: IDs
	}{
		{"this node owns the tag", "a", func(*cluster) {}, "order", 0, nil},
		{"another node owns it", "b", func(*cluster) {}, "order", 0, nil},
		{"the owner has changed", "b", func(c *cluster) { c.own("c") }, "order", 10 * time.Millisecond, nil},
		{"the tag is this node's since a moment ago", "b", func(c *cluster) { c.own("a") }, "order", 10 * time.Millisecond, nil},
		{"the tag was this node's until a moment ago", "a", func(c *cluster) { c.own("b") }, "order", 10 * time.Millisecond, nil},
		{"nobody owns it for a while", "", func(c *cluster) { time.AfterFunc(2*time.Second, func() { c.own("c") }) }, "order", 2200 * time.Millisecond, nil},
		{"nobody owns it", "", func(*cluster) {}, "order", 5 * time.Second, leaf.ErrNotReady},
		{"the owner hangs", "b", func(c *cluster) { c.onAsk = hangs }, "order", 5 * time.Second, leaf.ErrNotReady},
		{"the owner hangs until it is replaced", "b", func(c *cluster) {
			c.onAsk = hangs
			time.AfterFunc(2*time.Second, func() { c.own("c") })
		}, "order", 3200 * time.Millisecond, nil},
		{"the owner refuses the secret of an earlier session", "b", func(c *cluster) {
			c.onAsk = func(context.Context, string) error {
				c.onAsk = nil
				return leaf.ErrUnauthenticated
			}
		}, "order", 10 * time.Millisecond, nil},
		{"an error of this node", "b", func(*cluster) {}, "other", 0, leaf.ErrUnknownTag},
		{"an answer of the owner", "b", func(c *cluster) {
			c.onAsk = func(context.Context, string) error { return leaf.ErrExhausted }
		}, "order", 0, leaf.ErrExhausted},
	} {
		for name, take := range map[string]func(ctx context.Context, i *forward.Issuer) (int64, error){
			"one": func(ctx context.Context, i *forward.Issuer) (int64, error) { return i.Next(ctx, tt.tag) },
			"a batch": func(ctx context.Context, i *forward.Issuer) (int64, error) {
				got, err := i.NextN(ctx, tt.tag, 3)
				if err != nil {
					return 0, err
				}
				return got[0].Lo, nil
			},
		} {
			t.Run(tt.name+"/"+name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					c := newCluster(tt.owner, "a", "b", "c")
					tt.happen(c)
					began := time.Now()
					id, err := take(t.Context(), c.issuer())
					if !errors.Is(err, tt.want) || tt.want == nil && id != 1 {
						t.Errorf("%d, %v, want 1, %v", id, err, tt.want)
					}
					if took := time.Since(began); took > tt.takes {
						t.Errorf("took %v, want at most %v", took, tt.takes)
					}
				})
			})
		}
	}
}

// Calls that wait for an owner take nothing from those that wait for the store. How many may is a bound of its own.
func TestTooManyWaitForOwners(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx := context.WithValue(t.Context(), leaf.AdmissionKey{}, refuses{})
		c := newCluster("", "a", "b")
		i := c.issuer()
		i.SetMaxWaiting(2)
		for round := range 2 {
			answers := make(chan error, 3)
			for range 3 {
				go func() {
					_, err := i.Next(ctx, "order")
					answers <- err
				}()
			}
			synctest.Wait()
			if len(answers) != 1 {
				t.Fatalf("round %d: %d of 3 calls ended, want the one too many", round, len(answers))
			}
			if err := <-answers; !errors.Is(err, leaf.ErrNotReady) || leaf.RetryAfter(err) == 0 {
				t.Errorf("round %d: %v, want ErrNotReady that says when to retry", round, err)
			}
			c.own("b")
			for range 2 {
				if err := <-answers; err != nil {
					t.Errorf("round %d: %v", round, err)
				}
			}
			c.own("")
			c.nodes["a"].believed = ""
		}
	})
}

// A server hears of a call that another node must answer before the call leaves: until the answer comes, which may take a
// second where the owner has no IDs, the replies to other requests would wait with it.
func TestServersHearOfCallsToOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		heard := 0
		ctx := context.WithValue(t.Context(), leaf.WaitKey{}, func() { heard++ })
		for owner, want := range map[string]int{"a": 0, "b": 1} {
			heard = 0
			c := newCluster(owner, "a", "b")
			c.onAsk = func(context.Context, string) error {
				if heard == 0 {
					t.Error("the call has left before")
				}
				return leaf.ErrExhausted
			}
			if _, _ = c.issuer().Next(ctx, "order"); heard != want {
				t.Errorf("owner %s: heard of %d calls, want %d", owner, heard, want)
			}
			heard = 0
			s := &sections{owners: map[string]string{"x": owner}, believed: map[string]string{"x": owner}}
			sequences := forward.New(forward.Config{Remote: theOthers{remote{}, s}, Self: "a", MaxWait: time.Second, Attempt: time.Second}).Sequences(at{s, "a"}, s.look)
			if _, err := sequences.NextEach(ctx, "chat", []leaf.SequenceRequest{{Entity: "x", Count: 1}}); err != nil || heard != want {
				t.Errorf("owner %s: heard of %d calls for a sequence, want %d; %v", owner, heard, want, err)
			}
		}
	})
}

// refuses is the admission of a node that works to capacity.
type refuses struct{}

func (refuses) Admit() error { return leaf.ErrThrottled }

// The node learns what the owner has issued, and already knows what it has issued itself.
func TestHeard(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for owner, want := range map[string]int64{"a": 0, "b": 4} {
			c := newCluster(owner, "a", "b")
			if _, err := c.issuer().NextN(t.Context(), "order", 3); err != nil || c.heard != want {
				t.Errorf("owner %s: heard %d, %v, want %d", owner, c.heard, err, want)
			}
		}
	})
}

// A caller that leaves ends its call. The call has failed if the caller has waited for more than one attempt, or for an
// owner to appear: an alert tells of calls without an answer, and shall not tell of callers without patience.
func TestCallerLeaves(t *testing.T) {
	for _, tt := range []struct {
		name             string
		owner            string
		hears            error // what the caller hears; nil: the owner hangs
		answered, failed int64
	}{
		{"no owner", "", nil, 0, 1},
		{"before the owner's time is up", "b", nil, 0, 0},
		{"the owner does not answer", "b", leaf.ErrNotReady, 0, 1},
		{"the owner answers with an error", "b", leaf.ErrExhausted, 1, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
				defer cancel()
				c := newCluster(tt.owner, "a", "b")
				c.onAsk = func(ctx context.Context, _ string) error {
					if tt.hears != nil {
						return tt.hears
					}
					<-ctx.Done()
					return leaf.ErrNotReady
				}
				began := time.Now()
				i := c.issuer()
				_, err := i.Next(ctx, "order")
				if want := cmp.Or(tt.hears, leaf.ErrNotReady); !errors.Is(err, want) {
					t.Errorf("%v, want %v", err, want)
				}
				if took := time.Since(began); tt.answered == 0 && took != 300*time.Millisecond {
					t.Errorf("took %v", took)
				}
				if answered, failed := i.Forwarded(); answered != tt.answered || failed != tt.failed {
					t.Errorf("%d answered, %d failed, want %d, %d", answered, failed, tt.answered, tt.failed)
				}
			})
		})
	}
}

// What was forwarded is not forwarded again, and the node looks once whether it owns the tag now.
func TestHere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster("b", "a", "b")
		_, err := forward.Here(c.nodes["a"], c.nodes["a"].look).Next(t.Context(), "order")
		if _, elsewhere := errors.AsType[*owner.ElsewhereError](err); !elsewhere || c.looks != 1 {
			t.Errorf("%v after %d looks", err, c.looks)
		}
		c.own("a")
		if id, err := forward.Here(c.nodes["a"], c.nodes["a"].look).Next(t.Context(), "order"); err != nil || c.looks != 2 {
			t.Errorf("%d, %v after %d looks", id, err, c.looks)
		}
	})
}
