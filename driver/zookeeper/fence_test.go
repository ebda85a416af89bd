package zookeeper_test

import (
	"bytes"
	"testing"

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
