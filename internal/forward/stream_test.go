package forward_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/internal/forward"
	"github.com/leaf-idgen/leaf/internal/owner"
)

// streams is a node that counts the streams that other nodes open.
type streams struct {
	opened atomic.Int64
	issuer leaf.Issuer
}

func (s *streams) forwarded(string) *leaf.Issuers {
	s.opened.Add(1)
	return &leaf.Issuers{Segment: s.issuer, Snowflake: leaf.Disabled("snowflake")}
}

func newPeers(t *testing.T) *forward.Peers {
	t.Helper()
	peers := forward.NewPeers(nil, slog.New(slog.DiscardHandler))
	t.Cleanup(func() { _ = peers.Close() })
	return peers
}

// A stream goes from call to call. One that has given what was not asked for, or whose caller has left, does not: what
// comes on it may be meant for another call.
func TestStreamsAreUsedAgain(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, tag string
		wait      time.Duration // of the caller; 0: as long as it takes
		want      error
		opened    int64 // with the calls before and after it
	}{
		{"IDs", "order", 0, nil, 1},
		{"an error of the owner", "exhausted", 0, leaf.ErrExhausted, 1},
		{"an ID more than asked for", "more", 0, leaf.ErrNotReady, 2},
		{"the caller leaves", "hangs", 10 * time.Millisecond, leaf.ErrNotReady, 2},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			node, peers := &streams{issuer: says{}}, newPeers(t)
			address, _ := start(t, "127.0.0.1:0", node.forwarded)
			to := owner.Route{Address: address, Secret: "secret"}
			for _, call := range []struct {
				tag  string
				wait time.Duration
				want error
			}{{"order", 0, nil}, {tt.tag, tt.wait, tt.want}, {"order", 0, nil}} {
				ctx := t.Context()
				if call.wait > 0 {
					var cancel context.CancelFunc
					ctx, cancel = context.WithTimeout(ctx, call.wait)
					defer cancel()
				}
				began := time.Now()
				if _, err := peers.NextN(ctx, to, call.tag, 3); !errors.Is(err, call.want) || time.Since(began) > 5*time.Second {
					t.Errorf("%s: %v after %v, want %v", call.tag, err, time.Since(began), call.want)
				}
			}
			if n := node.opened.Load(); n != tt.opened {
				t.Errorf("%d streams were opened, want %d", n, tt.opened)
			}
		})
	}
}

// A node that starts again has ended its streams, or broken them. No caller notices, and no log says that it is away.
func TestRestingStreamEnds(t *testing.T) {
	t.Parallel()
	cut, cancel := context.WithCancel(context.Background())
	cancel()
	for name, ctx := range map[string]context.Context{"it has stopped": context.Background(), "it was cut off": cut} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			node, peers := &streams{issuer: says{}}, newPeers(t)
			address, stop := start(t, "127.0.0.1:0", node.forwarded)
			to := owner.Route{Address: address, Secret: "secret"}
			if _, err := peers.NextN(t.Context(), to, "order", 1); err != nil {
				t.Error(err)
			}
			stop(ctx)
			start(t, address, node.forwarded)
			if _, err := peers.NextN(t.Context(), to, "order", 1); err != nil || node.opened.Load() != 2 {
				t.Errorf("%v, and %d streams", err, node.opened.Load())
			}
		})
	}
}

// stuck is a node that never answers for its tag "stuck" and its entity "stuck", as while a transaction has locked their row,
// or their database does not answer.
type stuck struct {
	says

	asked chan struct{} // gets one for each call for them
}

func (s stuck) Next(ctx context.Context, tag string) (int64, error) {
	if tag == "stuck" {
		s.asked <- struct{}{}
		tag = "hangs"
	}
	return s.says.Next(ctx, tag)
}

func (s stuck) NextEach(ctx context.Context, sequence string, requests []leaf.SequenceRequest) ([]leaf.SequenceResult, error) {
	if requests[0].Entity == "stuck" {
		s.asked <- struct{}{}
		<-ctx.Done()
		return nil, ctx.Err()
	}
	return s.says.NextEach(ctx, sequence, requests)
}

// Calls that the owner does not answer are bounded, those for tags and those for sequences each for itself. So neither takes the
// room on the connection from the other, and what one database holds up leaves the way to tags of another one free: the owner
// has a session in each.
func TestStuckCallsLeaveRoom(t *testing.T) {
	t.Parallel()
	tag := func(ctx context.Context, peers *forward.Peers, to owner.Route, tag string) error {
		_, err := peers.NextN(ctx, to, tag, 1)
		return err
	}
	entity := func(ctx context.Context, peers *forward.Peers, to owner.Route, entity string) error {
		_, err := peers.NextEach(ctx, to, "chat", []leaf.SequenceRequest{{Entity: entity, Count: 1}})
		return err
	}
	for _, tt := range []struct {
		name            string
		stuck, stranger func(ctx context.Context, peers *forward.Peers, to owner.Route, name string) error
		most            int
	}{
		{"tags", tag, entity, 96},
		{"sequences", entity, tag, 128},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			node, peers := stuck{asked: make(chan struct{})}, newPeers(t)
			address, _ := start(t, "127.0.0.1:0", func(string) *leaf.Issuers {
				return &leaf.Issuers{Segment: node, Snowflake: leaf.Disabled("snowflake"), Sequence: node}
			})
			to := owner.Route{Address: address, Secret: "session in one database"}
			other := owner.Route{Address: address, Secret: "session in another one"}
			ctx, leave := context.WithCancel(t.Context())
			var calls sync.WaitGroup
			defer calls.Wait()
			defer leave()
			for range tt.most {
				calls.Go(func() { _ = tt.stuck(ctx, peers, to, "stuck") })
				<-node.asked
			}
			short, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
			defer cancel()
			if err := tt.stuck(short, peers, to, "order"); !errors.Is(err, leaf.ErrNotReady) {
				t.Errorf("one more: %v", err)
			}
			long, cancel := context.WithTimeout(t.Context(), 10*time.Second)
			defer cancel()
			if err := tt.stranger(long, peers, to, "order"); err != nil {
				t.Errorf("a call of the other kind: %v", err)
			}
			if err := tt.stuck(long, peers, other, "order"); err != nil {
				t.Errorf("a call of another session: %v", err)
			}
		})
	}
}

// A new connection ends those that no call has used for long: their sessions have ended, and nothing else would tell.
func TestConnectionsOfEndedSessions(t *testing.T) {
	t.Parallel()
	address, peers := serve(t), newPeers(t)
	peers.Age(time.Hour)
	for session := range 9 {
		if session >= 5 {
			peers.Age(2 * time.Minute)
		}
		to := owner.Route{Address: address, Secret: fmt.Sprint("session ", session)}
		if _, err := peers.NextN(t.Context(), to, "order", 2); !errors.Is(err, leaf.ErrUnauthenticated) {
			t.Errorf("session %d: %v", session, err)
		}
		to.Epoch++ // as for another slot of the session
		_, _ = peers.NextN(t.Context(), to, "order", 2)
		want := session + 1
		if session >= 5 {
			want = 1
		}
		if n := peers.Connections(); n != want {
			t.Errorf("session %d: %d connections, want %d", session, n, want)
		}
	}
}
