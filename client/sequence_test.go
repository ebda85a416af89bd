package client_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/client"
	"github.com/leaf-idgen/leaf/client/leaftest"
	"github.com/leaf-idgen/leaf/leafpb"
)

// TestSequence: the methods of a sequence, over gRPC.
func TestSequence(t *testing.T) {
	t.Parallel()
	s := leaftest.New(t)
	s.AddSequence("chat")
	c := s.Client()
	chat := c.Sequence("chat")
	var got []string
	note := func(v any, err error) { got = append(got, fmt.Sprint(v, err)) }
	note(chat.Next(t.Context(), "7"))
	note(chat.NextN(t.Context(), "7", 10))
	note(chat.Peek(t.Context(), "7"))
	note(nil, chat.SkipTo(t.Context(), "7", 500))
	note(chat.Next(t.Context(), "7"))
	note(chat.NextEach(t.Context(), []leaf.SequenceRequest{{Entity: "7", Count: 2}, {Entity: "8", Count: 1}}))
	want := []string{"1 <nil>", "[2, 12) <nil>", "12 <nil>", "<nil> <nil>", "500 <nil>", "[{[501, 503) <nil>} {[1, 2) <nil>}] <nil>"}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	for name, tt := range map[string]struct {
		err, want error
	}{
		"an unknown sequence": {second(c.Sequence("none").Next(t.Context(), "7")), leaf.ErrUnknownTag},
		"no number":           {second(chat.NextN(t.Context(), "7", 0)), leaf.ErrBadRequest},
		"no request":          {second(chat.NextEach(t.Context(), nil)), leaf.ErrBadRequest},
	} {
		if !errors.Is(tt.err, tt.want) {
			t.Errorf("%s: %v, want %v", name, tt.err, tt.want)
		}
	}
	if err := c.Close(t.Context()); err != nil {
		t.Error(err)
	}
	if _, err := chat.Next(t.Context(), "7"); !errors.Is(err, leaf.ErrNotReady) {
		t.Errorf("after Close: %v", err)
	}
}

func second[T any](_ T, err error) error { return err }

// TestSequenceOfAnOldNode: a node of a version without sequences works for all else.
func TestSequenceOfAnOldNode(t *testing.T) {
	t.Parallel()
	c := newClient(t, client.Addresses(startServer(t, &counter{}).addr))
	for range 4 {
		if _, err := c.Sequence("chat").Next(t.Context(), "7"); !errors.Is(err, leaf.ErrDisabled) || !strings.Contains(err.Error(), "version without sequences") {
			t.Errorf("%v", err)
		}
	}
	healthy(t, c)
}

// TestSequencesLeaveRoom: a node that is slow with many calls of sequences answers health checks and tags.
func TestSequencesLeaveRoom(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var calls atomic.Int64
		c := overWiresTo(t, &server{segment: &counter{}, sequence: func(ctx context.Context, _ *leafpb.SequenceRequest) (*leafpb.SequenceResponse, error) {
			calls.Add(1)
			<-ctx.Done()
			return nil, ctx.Err()
		}})
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		var callers sync.WaitGroup
		for range 100 {
			callers.Go(func() { _, _ = c.Sequence("chat").Next(ctx, "7") })
		}
		time.Sleep(time.Second)
		if n := calls.Load(); n != 32 {
			t.Errorf("%d calls at once, want 32", n)
		}
		if _, err := c.Next(t.Context(), "order"); err != nil {
			t.Error(err)
		}
		cancel()
		callers.Wait()
		healthy(t, c)
		if err := c.Close(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

// TestSequencesWithoutAnOwner: entities that no node issues at the moment, as after a crash of their owner, leave room for those of
// owners that work. The calls for them wait at the nodes that are left.
func TestSequencesWithoutAnOwner(t *testing.T) {
	bubble(t, func(t *testing.T) {
		c := overWiresTo(t, &server{segment: &counter{}, sequence: func(ctx context.Context, r *leafpb.SequenceRequest) (*leafpb.SequenceResponse, error) {
			if r.GetRequests()[0].GetEntity() == "waits" {
				<-ctx.Done()
				return nil, ctx.Err()
			}
			return &leafpb.SequenceResponse{
				Results: []*leafpb.EntityResponse{{Range: &leafpb.Range{Lo: 1, Hi: 2}}}, Route: &leafpb.Route{Owner: "node:1", Epoch: 1},
			}, nil
		}})
		if err := c.WaitReady(t.Context()); err != nil {
			t.Fatal(err)
		}
		chat := c.Sequence("chat")
		if _, err := chat.Next(t.Context(), "7"); err != nil { // the client learns the owner
			t.Error(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		var callers sync.WaitGroup
		for range 100 {
			callers.Go(func() { _, _ = chat.Next(ctx, "waits") })
		}
		time.Sleep(time.Second)
		begun := time.Now()
		if _, err := chat.Next(t.Context(), "7"); err != nil || time.Since(begun) != 0 {
			t.Errorf("%v after %v", err, time.Since(begun))
		}
		cancel()
		callers.Wait()
		if err := c.Close(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

// TestSequenceOwnerWorks: that a node has no answer for an entity without an owner keeps no call from the entities that it owns.
func TestSequenceOwnerWorks(t *testing.T) {
	bubble(t, func(t *testing.T) {
		cl := newCluster(node("a", "", 100), node("b", "", 100))
		cl.sections = map[string]*leafpb.Route{"7": {Owner: "a:1", Epoch: 1}}
		c := cl.client(t)
		synctest.Wait()
		chat := c.Sequence("chat")
		if _, err := chat.Next(t.Context(), "7"); err != nil { // the client learns the owner
			t.Error(err)
		}
		for _, n := range cl.nodes {
			n.set(func(f *fake) { f.hangs = "waits" })
		}
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		var callers sync.WaitGroup
		for range 4 {
			callers.Go(func() { _, _ = chat.Next(ctx, "waits") })
		}
		for range 150 { // 15 s
			cl.nodes["a"].askedEntities()
			if _, err := chat.Next(t.Context(), "7"); err != nil {
				t.Error(err)
			}
			if !slices.Contains(cl.nodes["a"].askedEntities(), "7") {
				t.Error("the owner was not asked")
			}
			time.Sleep(100 * time.Millisecond)
		}
		cancel()
		callers.Wait()
	})
}

// TestSequenceInterceptorHangs: an interceptor of the application ignores the context. The call ends at its deadline,
// with the option's name, and no node is blamed.
func TestSequenceInterceptorHangs(t *testing.T) {
	t.Parallel()
	s := leaftest.New(t)
	s.AddSequence("chat")
	hang := make(chan struct{})
	c := s.Client(client.WithStreamInterceptors(func(ctx context.Context, d *grpc.StreamDesc, cc *grpc.ClientConn, method string, open grpc.Streamer, opts ...grpc.CallOption) (grpc.ClientStream, error) {
		if strings.HasSuffix(method, "/Sequence") {
			<-hang
		}
		return open(ctx, d, cc, method, opts...)
	}))
	defer close(hang)
	if err := c.WaitReady(t.Context()); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if _, err := c.Sequence("chat").Next(ctx, "7"); !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "WithStreamInterceptors") {
		t.Errorf("%v", err)
	}
	healthy(t, c)
}

// TestSequenceRetries: what a call does about what a node answers, by the nodes that it asks and the error of its end.
func TestSequenceRetries(t *testing.T) {
	failing := func(entity string, err error) func(leaf.SequenceRequest) error {
		return func(r leaf.SequenceRequest) error {
			if r.Entity == entity {
				return err
			}
			return nil
		}
	}
	for _, tt := range []struct {
		name  string
		first func(*fake) // what is wrong with the node that is asked first
		other func(*fake) // and with the others; nil: nothing
		asked []string    // of the others
		want  error
		took  time.Duration // at most
	}{
		{"nothing is wrong", func(*fake) {}, nil, nil, nil, 0},
		{"it is down", func(f *fake) { f.down = true }, nil, []string{"7", "8"}, nil, 0},
		{"it does not answer", func(f *fake) { f.mute = true }, nil, []string{"7", "8"}, nil, 1500 * time.Millisecond},
		{"one entity has no owner", func(f *fake) { f.each = failing("8", leaf.ErrNotReady) }, nil, []string{"8"}, nil, 0},
		{"it does not know the sequence", func(f *fake) { f.each = failing("8", leaf.ErrUnknownTag) }, nil, []string{"8"}, nil, 0},
		{"two do not know it", func(f *fake) { f.each = failing("8", leaf.ErrUnknownTag) }, func(f *fake) { f.each = failing("8", leaf.ErrUnknownTag) }, []string{"8"}, leaf.ErrUnknownTag, 0},
		{"the request is wrong", func(f *fake) { f.each = failing("8", leaf.ErrBadRequest) }, nil, nil, leaf.ErrBadRequest, 0},
		{"no entity has an owner", func(f *fake) { f.each = failing("8", leaf.ErrNotReady) }, func(f *fake) { f.each = failing("8", leaf.ErrNotReady) }, nil, leaf.ErrNotReady, 3 * time.Second},
	} {
		t.Run(tt.name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				cl := newCluster(node("a", "here", 100), node("b", "there", 100))
				c := cl.client(t, client.WithZone("here"))
				synctest.Wait()
				cl.nodes["a"].set(tt.first)
				if tt.other != nil {
					cl.nodes["b"].set(tt.other)
				}
				ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
				defer cancel()
				began := time.Now()
				got, err := c.Sequence("chat").NextEach(ctx, []leaf.SequenceRequest{{Entity: "7", Count: 1}, {Entity: "8", Count: 1}})
				took := time.Since(began)
				if err != nil || got[0].Err != nil || !errors.Is(got[1].Err, tt.want) || took > tt.took {
					t.Errorf("%v, %v after %v; want %v within %v", got, err, took, tt.want, tt.took)
				}
				if asked := cl.nodes["b"].askedEntities(); tt.took < 3*time.Second && !slices.Equal(asked, tt.asked) {
					t.Errorf("the other node was asked for %q, want %q", asked, tt.asked)
				}
			})
		})
	}
}

// TestSequenceOwnerIsAsked: a call goes to the owner of its first entity, as far as answers have told, and to another node
// if that one fails. Entities of one section have one owner.
func TestSequenceOwnerIsAsked(t *testing.T) {
	bubble(t, func(t *testing.T) {
		cl := newCluster(node("a", "", 100), node("b", "", 100), node("c", "", 0)) // c is never asked as long as a or b can be
		cl.sections = map[string]*leafpb.Route{"7": {Owner: "c:1", Epoch: 1}, "8": {Owner: "b:1", Epoch: 1}}
		c := cl.client(t)
		synctest.Wait()
		call := func(entities ...string) {
			t.Helper()
			var requests []leaf.SequenceRequest
			for _, e := range entities {
				requests = append(requests, leaf.SequenceRequest{Entity: e, Count: 1})
			}
			if _, err := c.NextEach(t.Context(), "chat", requests); err != nil {
				t.Fatal(err)
			}
		}
		asked := func(step, id string, want int) {
			t.Helper()
			if got := len(cl.nodes[id].askedEntities()); got != want {
				t.Errorf("%s: %d requests at %s, want %d", step, got, id, want)
			}
			for _, f := range cl.nodes {
				f.askedEntities()
			}
		}
		call("7")
		call("8")
		asked("learn", "c", 0)
		for range 10 {
			call("7")
			call("7", "8")
		}
		asked("the owner of the first", "c", 30)
		for range 10 {
			call("8", "7")
		}
		asked("another entity first", "b", 20)
		cl.nodes["c"].set(func(f *fake) { f.down = true })
		cl.sections["7"] = &leafpb.Route{Owner: "a:1"} // of a registry that begins anew
		call("7")
		asked("the owner fails", "c", 1)
		for range 10 {
			call("7")
		}
		asked("a new owner", "a", 10)
	})
}

// TestSequenceThrottled: a call waits as long as the node says, if its time allows that, else it ends at once.
func TestSequenceThrottled(t *testing.T) {
	bubble(t, func(t *testing.T) {
		cl := newCluster(node("a", "", 100))
		c := cl.client(t)
		synctest.Wait()
		until := time.Now().Add(time.Second)
		cl.nodes["a"].set(func(f *fake) {
			f.each = func(leaf.SequenceRequest) error {
				if left := time.Until(until); left > 0 {
					return client.Answered("throttled", "slowly", left)
				}
				return nil
			}
		})
		short, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
		defer cancel()
		if _, err := c.Sequence("chat").Next(short, "7"); !errors.Is(err, leaf.ErrThrottled) || !time.Now().Before(until) {
			t.Errorf("%v before the node wants to be asked, in time: %v", err, time.Now().Before(until))
		}
		if id, err := c.Sequence("chat").Next(t.Context(), "7"); id != 1 || err != nil || time.Now().Before(until) {
			t.Errorf("%d, %v", id, err)
		}
		if got := len(cl.nodes["a"].askedEntities()); got != 3 {
			t.Errorf("%d requests, want 3", got)
		}
	})
}

// TestSequenceOrder: whatever is late, lost or sent again, no entity gets a number twice, and none below that of a call
// that had ended before its own call began.
func TestSequenceOrder(t *testing.T) {
	bubble(t, func(t *testing.T) {
		cl := newCluster(node("a", "", 100), node("b", "", 100), node("c", "", 100))
		chance := rand.New(rand.NewPCG(1, 2))
		var lock sync.Mutex
		below := func(n int) int {
			lock.Lock()
			defer lock.Unlock()
			return chance.IntN(n)
		}
		pause := func() { time.Sleep(time.Duration(below(1<<below(22))) * time.Microsecond) } // up to 2 s, mostly less than 1 ms
		for _, f := range cl.nodes {
			f.each = func(leaf.SequenceRequest) error {
				pause()
				return []error{nil, nil, nil, nil, leaf.ErrNotReady}[below(5)]
			}
		}
		c := cl.client(t, client.WithRetryBudget(1, 10_000))
		synctest.Wait()
		var mu sync.Mutex
		ended, seen := map[string]int64{}, map[string]bool{}
		var callers sync.WaitGroup
		for range 10 {
			callers.Go(func() {
				for range 30 {
					requests := []leaf.SequenceRequest{{Entity: fmt.Sprint(below(3)), Count: 1}, {Entity: fmt.Sprint(below(3)), Count: 1}}
					mu.Lock()
					before := [2]int64{ended[requests[0].Entity], ended[requests[1].Entity]}
					mu.Unlock()
					results, err := c.NextEach(t.Context(), "chat", requests)
					mu.Lock()
					for i, r := range results {
						if entity := requests[i].Entity; err == nil && r.Err == nil {
							if key := fmt.Sprint(entity, " ", r.Range.Lo); seen[key] || r.Range.Lo <= before[i] {
								t.Errorf("%s: it was given before: %v; %d had ended", key, seen[key], before[i])
							} else {
								seen[key] = true
							}
							ended[entity] = max(ended[entity], r.Range.Lo)
						}
					}
					mu.Unlock()
				}
			})
		}
		callers.Wait()
		if st := c.Stats(); len(seen) < 300 || st.Retries == 0 {
			t.Errorf("%d numbers, %+v", len(seen), st)
		}
	})
}

// TestSequenceBesideAMuteNode: of a node that answers health checks only, few calls for a sequence wait.
func TestSequenceBesideAMuteNode(t *testing.T) {
	bubble(t, func(t *testing.T) {
		cl := newCluster(node("a", "", 100), node("b", "", 100))
		c := cl.client(t)
		synctest.Wait()
		cl.nodes["a"].set(func(n *fake) { n.mute = true })
		waited := 0
		for range 200 { // 100 s
			began := time.Now()
			if _, err := c.Sequence("chat").Next(t.Context(), "7"); err != nil {
				t.Error(err)
			}
			if time.Since(began) > 100*time.Millisecond {
				waited++
			}
			time.Sleep(500 * time.Millisecond)
		}
		if waited < 1 || waited > 12 {
			t.Errorf("%d of 200 calls waited", waited)
		}
	})
}

// TestSequenceKeepsWhatANodeSaid: a request that one node has refused, and another one has not answered, ends with what the first
// one said.
func TestSequenceKeepsWhatANodeSaid(t *testing.T) {
	bubble(t, func(t *testing.T) {
		cl := newCluster(node("a", "here", 100), node("b", "there", 100))
		c := cl.client(t, client.WithZone("here"))
		synctest.Wait()
		cl.nodes["a"].set(func(f *fake) {
			f.each = func(r leaf.SequenceRequest) error {
				if r.Entity == "8" {
					return client.Answered("not-ready", "entity 8 has no owner", 0)
				}
				return nil
			}
		})
		cl.nodes["b"].set(func(f *fake) { f.mute = true })
		for _, limit := range []time.Duration{20 * time.Millisecond, 100 * time.Millisecond, time.Second, 3 * time.Second} {
			ctx, cancel := context.WithTimeout(t.Context(), limit)
			got, err := c.Sequence("chat").NextEach(ctx, []leaf.SequenceRequest{{Entity: "7", Count: 1}, {Entity: "8", Count: 1}})
			cancel()
			if err != nil || got[0].Err != nil || got[1].Err == nil || !strings.Contains(got[1].Err.Error(), "entity 8 has no owner") {
				t.Errorf("%v: %v, %v; want what node a said", limit, got, err)
			}
		}
	})
}
