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

// waits is an issuer whose callers wait until they are released.
type waits struct {
	says

	waiting chan struct{} // gets one for each call
	release chan struct{}
}

func (w waits) Next(ctx context.Context, tag string) (int64, error) {
	w.waiting <- struct{}{}
	select {
	case <-w.release:
	case <-ctx.Done():
	}
	return w.says.Next(ctx, tag)
}

// Calls under way, and streams that rest, leave room on the connection. A call beyond them waits.
func TestStreamsAreBounded(t *testing.T) {
	t.Parallel()
	const most = 64
	w := waits{waiting: make(chan struct{}), release: make(chan struct{})}
	node, peers := &streams{issuer: w}, newPeers(t)
	address, _ := start(t, "127.0.0.1:0", node.forwarded)
	to := owner.Route{Address: address, Secret: "secret"}
	var calls sync.WaitGroup
	for range most {
		calls.Go(func() {
			if _, err := peers.NextN(t.Context(), to, "order", 1); err != nil {
				t.Error(err)
			}
		})
		<-w.waiting
	}
	short, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if _, err := peers.NextN(short, to, "order", 2); !errors.Is(err, leaf.ErrNotReady) || node.opened.Load() != most {
		t.Errorf("%v, and %d streams, want %d", err, node.opened.Load(), most)
	}
	close(w.release)
	calls.Wait()
	for session := range 4 * most { // each with a stream of its own, and a connection has at most 256
		to.Secret = fmt.Sprint("session ", session)
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		if _, err := peers.NextN(ctx, to, "order", 2); err != nil {
			t.Fatalf("session %d: %v", session, err)
		}
		cancel()
	}
}
