package zookeeper_test

import (
	"bytes"
	"encoding/binary"
	"sync/atomic"
	"testing"

	"github.com/leaf-idgen/leaf/internal/test/proxy"
	"github.com/leaf-idgen/leaf/internal/test/server"
)

// TestFenceEntryDeletedByHand: a version never comes back for a tag.
func TestFenceEntryDeletedByHand(t *testing.T) {
	t.Parallel()
	p := newPlace(t, server.ZooKeeper(t))
	f := p.fence(t)
	space, _, err := f.Open(ctx(t))
	if err != nil {
		t.Fatal(err)
	}
	old, err := f.Swap(ctx(t), space, "a/b", nil, 5)
	if err != nil {
		t.Fatal(err)
	}
	p.remove(t, p.cfg.Chroot+"/leaf/fence/test/"+space+"/a%2Fb")
	again, err := f.Swap(ctx(t), space, "a/b", nil, 5)
	if err != nil || again.Version <= old.Version {
		t.Fatalf("Swap = %+v, %v; want a version above %d", again, err, old.Version)
	}
	if e, err := f.Swap(ctx(t), space, "a/b", &old, 9); err == nil {
		t.Errorf("Swap from a version before the deletion = %+v", e)
	}
	// All entries of the incarnation are lost, but its name is left.
	p.remove(t, p.cfg.Chroot+"/leaf/fence/test/"+space)
	if next, created, err := f.Open(ctx(t)); err != nil || !created || next == space {
		t.Errorf("Open after the loss = %q, %v, %v; want a new incarnation", next, created, err)
	}
}

// TestFenceReplyLost: an unknown outcome is no knowledge, and the second sending of
// a Swap changes nothing.
func TestFenceReplyLost(t *testing.T) {
	t.Parallel()
	p := newPlace(t, server.ZooKeeper(t))
	wired, wire := p.behind(t)
	f := wired.fence(t)
	space, _, err := f.Open(ctx(t))
	if err != nil {
		t.Fatal(err)
	}
	old, err := f.Swap(ctx(t), space, "order", nil, 5)
	if err != nil {
		t.Fatal(err)
	}
	lost := wire.CutReplyAfter(func(data []byte) bool { return bytes.Contains(data, []byte(`"end":6`)) })
	if e, err := f.Swap(ctx(t), space, "order", &old, 6); err == nil {
		t.Errorf("Swap whose reply was lost = %+v", e)
	}
	<-lost
	if e, err := f.Swap(ctx(t), space, "order", &old, 6); err == nil {
		t.Errorf("second sending = %+v; want ErrMoved", e)
	}
	if e, ok, err := f.Read(ctx(t), space, "order"); err != nil || !ok || e.End != 6 {
		t.Errorf("Read = %+v, %v, %v; want end 6", e, ok, err)
	}
}

// TestFenceAtAServerBehind: the session ends between two reads of Open, and the next one is at
// a server that has not heard of the incarnation. Where the servers keep sessions of their own
// (localSessionsEnabled), a new session does not wait until its server has caught up. What that
// server knows ends no incarnation, in which all entries would be lost.
func TestFenceAtAServerBehind(t *testing.T) {
	t.Parallel()
	p := newPlace(t, server.ZooKeeper(t))
	space, _, err := p.fence(t).Open(ctx(t))
	if err != nil {
		t.Fatal(err)
	}
	wired, wire := p.behind(t)
	f := wired.fence(t)
	const xid, opcode, code = 4, 8, 16 // where these fields begin, after the length
	var asked atomic.Pointer[[]byte]
	var answered atomic.Bool
	wire.SetHook(func(from proxy.Side, data []byte) proxy.Action {
		of := asked.Load()
		switch {
		case from == proxy.Client && of == nil && bytes.HasSuffix(data, []byte("/"+space+"\x00")):
			asked.Store(new(bytes.Clone(data[xid:opcode])))
		case from == proxy.Server && of != nil && bytes.Equal(data[xid:opcode], *of) && answered.CompareAndSwap(false, true):
			const noNode = 1<<32 - 101
			binary.BigEndian.PutUint32(data[code:], noNode)
		}
		return proxy.Pass
	})
	got, created, err := f.Open(ctx(t))
	if created || err != nil || got != space {
		t.Errorf("Open = %q, %v, %v; the incarnation is %q", got, created, err, space)
	}
	if !answered.Load() {
		t.Error("Open has not asked for the folder of the incarnation")
	}
	if now := p.children(t, p.cfg.Chroot+"/leaf/fence/test"); len(now) != 1 || now[0] != space {
		t.Errorf("the fence has the incarnations %q, want %q alone", now, space)
	}
}
