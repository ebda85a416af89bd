package etcd_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/driver/etcd"
	"github.com/leaf-idgen/leaf/internal/test/proxy"
	"github.com/leaf-idgen/leaf/internal/test/server"
	"github.com/leaf-idgen/leaf/segment"
)

// isWrite recognises the message that writes a row.
func isWrite(data []byte) bool { return bytes.Contains(data, []byte(`"max_id"`)) }

// dropReplies lets the first write of a row pass, and nothing that the server says from then on.
func dropReplies(p *proxy.Proxy) (sent *atomic.Int64) {
	sent = new(atomic.Int64)
	p.SetHook(func(from proxy.Side, data []byte) proxy.Action {
		switch {
		case from == proxy.Client && isWrite(data):
			sent.Add(1)
		case from == proxy.Server && sent.Load() > 0:
			return proxy.Drop
		}
		return proxy.Pass
	})
	return sent
}

// order asks for 7 numbers of the tag order, whose step is 7.
func order() segment.Request {
	return segment.Request{Tag: "order", Step: 7, Length: 7, Min: 1, Max: segment.MaxStep}
}

func create(t *testing.T, s *etcd.Store, start int64) {
	t.Helper()
	if err := s.Create(short(t), segment.NewRow{Tag: "order", Start: start, Step: 7}); err != nil {
		t.Fatal(err)
	}
}

func maxID(t *testing.T, s *etcd.Store) int64 {
	t.Helper()
	row, err := s.Lookup(short(t), "order")
	if err != nil {
		t.Fatal(err)
	}
	return row.MaxID
}

// TestStoreLostReply: etcd has moved the row, and the node does not hear of it. There is no range, and
// nothing is sent again.
func TestStoreLostReply(t *testing.T) {
	ns := server.Etcd(t)
	p := newPlace(t, ns.Servers, ns.Root)
	s, other := p.store(t), newPlace(t, ns.Servers, ns.Root).store(t)
	create(t, s, 1)
	for i, call := range []func(ctx context.Context) (any, error){
		func(ctx context.Context) (any, error) { return s.Reserve(ctx, order()) }, // the row is read first
		func(ctx context.Context) (any, error) { return s.Reserve(ctx, order()) },
		func(ctx context.Context) (any, error) { return nil, s.ReturnUnused(ctx, "order", 1000, 900) },
		func(ctx context.Context) (any, error) { return s.Raise(ctx, "order", 1100) },
	} {
		want := []int64{8, 22, 900, 1100}[i]
		switch i {
		case 1: // so that s believes a row
			if res, err := s.Reserve(short(t), order()); err != nil || res.Range != (leaf.Range{Lo: 8, Hi: 15}) {
				t.Fatalf("Reserve = %v, %v", res, err)
			}
		case 2:
			if _, err := other.Raise(short(t), "order", 1000); err != nil {
				t.Fatal(err)
			}
		}
		sent := dropReplies(p.proxies[0])
		done := make(chan struct{})
		var got any
		var err error
		go func() {
			defer close(done)
			got, err = call(short(t))
		}()
		eventually(t, "the row moves", func(context.Context) error {
			if now := maxID(t, other); now != want {
				return fmt.Errorf("call %d: max_id is %d; want %d", i, now, want)
			}
			return nil
		})
		p.proxies[0].Cut()
		<-done
		p.proxies[0].SetHook(nil)
		if n := sent.Load(); n != 1 {
			t.Errorf("call %d was sent %d times", i, n)
		}
		if res, ok := got.(segment.Reservation); err == nil || ok && res != (segment.Reservation{}) || errors.Is(err, leaf.ErrConflict) || errors.Is(err, leaf.ErrUnknownTag) {
			t.Errorf("call %d with a lost reply = %v, %v; want an error that claims nothing", i, got, err)
		}
	}
	res, err := s.Reserve(short(t), order())
	if want := (leaf.Range{Lo: 1100, Hi: 1107}); err != nil || res.Range != want {
		t.Errorf("Reserve afterwards = %v, %v; want %v", res, err, want)
	}
}

// TestStoreLostReplies: nodes share a tag, and some hear nothing of what they wrote. No two ranges
// overlap.
func TestStoreLostReplies(t *testing.T) {
	ns := server.Etcd(t)
	create(t, newPlace(t, ns.Servers, ns.Root).store(t), 0)
	var mu sync.Mutex
	var ranges []leaf.Range
	lost := 0
	var nodes sync.WaitGroup
	for node := range 4 {
		p := newPlace(t, ns.Servers, ns.Root)
		s := p.store(t)
		nodes.Go(func() {
			for load := range 15 {
				if (load+node)%3 == 0 {
					p.proxies[0].CutReplyAfter(isWrite)
				}
				res, err := s.Reserve(short(t), order())
				p.proxies[0].SetHook(nil)
				mu.Lock()
				if err == nil {
					ranges = append(ranges, res.Range)
				} else {
					lost++
				}
				mu.Unlock()
			}
		})
	}
	nodes.Wait()
	if lost < 10 || len(ranges) < 20 {
		t.Errorf("%d ranges and %d lost replies: the test proves little", len(ranges), lost)
	}
	slices.SortFunc(ranges, func(a, b leaf.Range) int { return int(a.Lo - b.Lo) })
	for i := range ranges[1:] {
		if ranges[i+1].Lo < ranges[i].Hi {
			t.Errorf("ranges %v and %v overlap", ranges[i], ranges[i+1])
		}
	}
}

// TestStoreBlackHole: nothing passes, and every call ends with its context.
func TestStoreBlackHole(t *testing.T) {
	ns := server.Etcd(t)
	p := newPlace(t, ns.Servers, ns.Root)
	s := p.store(t)
	create(t, s, 1)
	if _, err := s.Reserve(short(t), order()); err != nil {
		t.Fatal(err)
	}
	heal := p.partition()
	for name, call := range map[string]func(context.Context) error{
		"Bind":         func(c context.Context) error { return s.Bind(c, segment.Binding{Store: "default"}) },
		"Reserve":      func(c context.Context) error { _, err := s.Reserve(c, order()); return err },
		"ReturnUnused": func(c context.Context) error { return s.ReturnUnused(c, "order", 8, 1) },
		"Raise":        func(c context.Context) error { _, err := s.Raise(c, "order", 100); return err },
		"Lookup":       func(c context.Context) error { _, err := s.Lookup(c, "order"); return err },
		"Rows":         func(c context.Context) error { _, err := s.Rows(c); return err },
		"Delete":       func(c context.Context) error { return s.Delete(c, "order") },
		"Enter":        func(c context.Context) error { return s.Enter(c, segment.Member{Node: "n"}) },
	} {
		if err := within(t, call); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%s: %v; want DeadlineExceeded", name, err)
		}
	}
	heal()
	eventually(t, "Reserve", func(c context.Context) error { _, err := s.Reserve(c, order()); return err })
}

// TestStoreLeaderIsKilled: two nodes take ranges while the leader of three members dies. They go on, no
// two ranges overlap, and none that was acknowledged is forgotten.
func TestStoreLeaderIsKilled(t *testing.T) {
	e := server.OwnEtcd(t, 3)
	defer e.Kill() // three members that leave in good order take 6 s
	leader, err := e.Leader(short(t))
	if err != nil {
		t.Fatal(err)
	}
	create(t, newPlace(t, e.Servers(), "/leaf/segment/x").store(t), 1)
	const before, after = 30, 60 // ranges when the leader is killed, and at the end
	var mu sync.Mutex
	var ranges []leaf.Range
	var killed atomic.Bool
	var nodes sync.WaitGroup
	for range 2 {
		s := newPlace(t, e.Servers(), "/leaf/segment/x").store(t)
		nodes.Go(func() {
			for ctx := short(t); ctx.Err() == nil; {
				c, cancel := context.WithTimeout(ctx, time.Second)
				res, err := s.Reserve(c, order())
				cancel()
				mu.Lock()
				if err == nil {
					ranges = append(ranges, res.Range)
				}
				n := len(ranges)
				mu.Unlock()
				if n >= before && killed.CompareAndSwap(false, true) {
					e.Kill(leader)
				}
				if n >= after {
					return
				}
			}
		})
	}
	nodes.Wait()
	if len(ranges) < after {
		t.Fatalf("%d ranges in 20 s", len(ranges))
	}
	slices.SortFunc(ranges, func(a, b leaf.Range) int { return int(a.Lo - b.Lo) })
	for i := range ranges[1:] {
		if ranges[i+1].Lo < ranges[i].Hi {
			t.Errorf("ranges %v and %v overlap", ranges[i], ranges[i+1])
		}
	}
	last := newPlace(t, e.Servers(), "/leaf/segment/x").store(t)
	eventually(t, "the row is read", func(c context.Context) error {
		row, err := last.Lookup(c, "order")
		if end := ranges[len(ranges)-1].Hi; err == nil && row.MaxID < end {
			t.Errorf("max_id is %d after a range that ends at %d", row.MaxID, end)
		}
		return err
	})
}

// TestStoreWithoutMajority: one member of three answers, and knows an old row. It gives no range, and
// shows nothing.
func TestStoreWithoutMajority(t *testing.T) {
	e := server.OwnEtcd(t, 3)
	defer e.Kill()
	p := newPlace(t, e.Servers(), "/leaf/segment/x")
	s := p.store(t)
	create(t, s, 1)
	e.Kill(0, 1)
	for _, px := range p.proxies[:2] {
		px.Swallow(proxy.Client, proxy.Server)
	}
	for name, call := range map[string]func(context.Context) error{
		"Reserve": func(c context.Context) error { _, err := s.Reserve(c, order()); return err },
		"Lookup":  func(c context.Context) error { _, err := s.Lookup(c, "order"); return err },
	} {
		if err := within(t, call); err == nil || errors.Is(err, leaf.ErrUnknownTag) {
			t.Errorf("%s without a majority: %v; want an error that claims nothing", name, err)
		}
	}
}
