package client_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/client"
	"github.com/leaf-idgen/leaf/discovery"
	"github.com/leaf-idgen/leaf/internal/server/grpcd"
	"github.com/leaf-idgen/leaf/internal/test/proxy"
	"github.com/leaf-idgen/leaf/leafpb"
)

// TestFaultsOverSockets breaks the connections to two of three real servers in turn, and
// stops one for good: every ID is distinct, and no caller whose deadline is 2 s notices.
func TestFaultsOverSockets(t *testing.T) {
	if testing.Short() {
		t.Skip("runs for seconds")
	}
	issuer := &counter{}
	quiet := grpcd.Config{Access: leaf.Anyone(issuer, issuer), Logger: slog.New(slog.DiscardHandler)}
	var proxies []*proxy.Proxy
	var stops []func()
	var nodes []discovery.Node
	for i, zone := range []string{"x", "x", "y"} {
		address, stop := startNode(t, "127.0.0.1:0", quiet)
		p, err := proxy.Start(address)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(p.Close)
		proxies, stops = append(proxies, p), append(stops, stop)
		nodes = append(nodes, discovery.Node{ID: fmt.Sprint("n", i), Zone: zone, Weight: 100, GRPC: p.Addr()})
	}
	c := newClient(t, client.Nodes(nodes...), client.WithZone("x"))

	var ids ledger
	var done atomic.Bool
	var callers sync.WaitGroup
	var received atomic.Int64
	for i := range 24 {
		callers.Go(func() {
			for k := 0; !done.Load(); k++ {
				ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
				start := time.Now()
				ranges, err := c.NextN(ctx, fmt.Sprint("tag ", i%4), k%5+1)
				if err != nil {
					t.Errorf("caller %d after %v: %v", i, time.Since(start), err)
				}
				cancel()
				ids.add(t, ranges...)
				received.Add(int64(len(ranges)))
			}
		})
	}
	progress := func(during string) {
		t.Helper()
		before := received.Load()
		for deadline := time.Now().Add(5 * time.Second); received.Load() < before+200; time.Sleep(time.Millisecond) {
			if time.Now().After(deadline) {
				t.Fatalf("%s: %d answers in 5 s", during, received.Load()-before)
			}
		}
	}
	progress("all live")
	for round := range 2 {
		for i, p := range proxies[:2] {
			for _, fault := range []struct {
				name       string
				begin, end func()
			}{
				{"connections reset", p.Cut, func() {}},
				{"killed", func() { p.Refuse(); p.Cut() }, func() {
					if err := p.Accept(); err != nil {
						t.Error(err)
					}
				}},
				{"stopped", func() { p.Swallow(proxy.Client, proxy.Server) }, func() { p.Swallow() }},
				{"network held", func() { p.Hold(proxy.Client, proxy.Server) }, func() { p.Hold() }},
				{"answers lost", func() { p.Swallow(proxy.Server) }, func() { p.Swallow(); p.Cut() }},
				{"slow", func() { p.Delay(100 * time.Millisecond) }, func() { p.Delay(0) }},
			} {
				name := fmt.Sprintf("round %d, node %d, %s", round, i, fault.name)
				fault.begin()
				progress(name)
				fault.end()
				progress(name + ", over")
			}
		}
	}
	stops[0]() // a clean end while requests come
	progress("one is shut down")
	done.Store(true)
	callers.Wait()
	t.Logf("%d IDs, %+v", ids.len(), c.Stats())
}

// TestNodeRestarts: the same address serves again, and is used again.
func TestNodeRestarts(t *testing.T) {
	issuer := &counter{}
	cfg := grpcd.Config{Access: leaf.Anyone(issuer, issuer), Logger: slog.New(slog.DiscardHandler)}
	address, stop := startNode(t, "127.0.0.1:0", cfg)
	c := newClient(t, client.Addresses(address))
	calls(t, c, 10)
	for range 3 {
		stop()
		failed := make(chan error, 1)
		go func() {
			ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
			defer cancel()
			_, err := c.Next(ctx, "order")
			failed <- err
		}()
		_, stop = startNode(t, address, cfg)
		if err := <-failed; err != nil {
			t.Errorf("a call across the restart: %v", err)
		}
	}
}

// byTag gives each tag, a number, IDs of its own. Every answer takes a moment.
type byTag struct {
	counter
	hang chan struct{} // what the first request waits for
	once sync.Once
}

func (b *byTag) Next(ctx context.Context, tag string) (int64, error) {
	r, err := b.NextN(ctx, tag, 1)
	if err != nil {
		return 0, err
	}
	return r[0].Lo, nil
}

func (b *byTag) NextN(ctx context.Context, tag string, n int) ([]leaf.Range, error) {
	if b.hang != nil {
		hang := false
		b.once.Do(func() { hang = true; close(b.hang) })
		if hang {
			<-ctx.Done()
			return nil, ctx.Err()
		}
	}
	number, err := strconv.ParseInt(tag, 10, 64)
	if err != nil {
		return nil, err
	}
	time.Sleep(time.Millisecond)
	r, err := b.counter.NextN(ctx, tag, n)
	r[0].Lo, r[0].Hi = r[0].Lo+number<<40, r[0].Hi+number<<40
	return r, err
}

// TestManyTags: more requests than streams queue behind one another, and each gets its
// own answer.
func TestManyTags(t *testing.T) {
	issuer := &byTag{}
	address, _ := startNode(t, "127.0.0.1:0", grpcd.Config{Access: leaf.Anyone(issuer, nil), Logger: slog.New(slog.DiscardHandler)})
	c := newClient(t, client.Addresses(address))
	var ids ledger
	var callers sync.WaitGroup
	for tag := range int64(200) {
		callers.Go(func() {
			ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
			defer cancel()
			for range 5 {
				id, err := c.Next(ctx, strconv.FormatInt(tag, 10))
				if err != nil || id>>40 != tag {
					t.Errorf("tag %d: %d of tag %d, %v", tag, id, id>>40, err)
					return
				}
				ids.add(t, leaf.Range{Lo: id, Hi: id + 1})
			}
		})
	}
	callers.Wait()
	if ids.len() != 1000 {
		t.Errorf("%d IDs", ids.len())
	}
}

// TestRequestUnderWay: a request whose connection breaks is sent again at once, also if
// there is but one node.
func TestRequestUnderWay(t *testing.T) {
	issuer := &byTag{hang: make(chan struct{})}
	address, _ := startNode(t, "127.0.0.1:0", grpcd.Config{Access: leaf.Anyone(issuer, nil), Logger: slog.New(slog.DiscardHandler)})
	p, err := proxy.Start(address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	c := newClient(t, client.Addresses(p.Addr()))
	go func() {
		<-issuer.hang
		p.Cut()
	}()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	if id, err := c.Next(ctx, "7"); err != nil || id>>40 != 7 {
		t.Errorf("%d, %v", id, err)
	}
}

// TestDoubtfulAnswers: an answer that is not exactly what was asked for gives no IDs. Those
// of an answer of the wrong size are counted as lost.
func TestDoubtfulAnswers(t *testing.T) {
	for _, c := range []struct {
		name   string
		ranges []*leafpb.Range // the answer to a request for 5
		lost   int64           // by each of them
	}{
		{"none", nil, 0},
		{"too few", []*leafpb.Range{{Lo: 1, Hi: 5}}, 4},
		{"too many", []*leafpb.Range{{Lo: 1, Hi: 7}}, 6},
		{"overlapping", []*leafpb.Range{{Lo: 1, Hi: 4}, {Lo: 3, Hi: 5}}, 0},
		{"falling", []*leafpb.Range{{Lo: 10, Hi: 13}, {Lo: 1, Hi: 3}}, 0},
		{"inverted", []*leafpb.Range{{Lo: 1, Hi: 7}, {Lo: 9, Hi: 8}}, 0},
		{"negative", []*leafpb.Range{{Lo: -2, Hi: 3}}, 0},
		{"overflowing", []*leafpb.Range{{Lo: 0, Hi: 1<<63 - 1}, {Lo: 1<<63 - 1, Hi: -1 << 63}}, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				s := &server{}
				s.raw.Store(&leafpb.StreamResponse{Ranges: c.ranges})
				leafClient := overWiresTo(t, s)
				ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
				defer cancel()
				if ranges, err := leafClient.NextN(ctx, "order", 5); err == nil || !errors.Is(err, leaf.ErrNotReady) {
					t.Errorf("%v, %v", ranges, err)
				}
				if err := leafClient.Close(t.Context()); err != nil {
					t.Error(err)
				}
				if lost := leafClient.Stats().Lost; c.lost == 0 && lost > 0 || c.lost > 0 && (lost == 0 || lost%c.lost > 0) {
					t.Errorf("%d lost IDs of answers with %d each", lost, c.lost)
				}
			})
		})
	}
}
