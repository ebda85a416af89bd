package etcd_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/leaf-idgen/leaf/driver/drivertest"
	"github.com/leaf-idgen/leaf/driver/etcd"
	"github.com/leaf-idgen/leaf/internal/test/server"
	"github.com/leaf-idgen/leaf/segment"
	"github.com/leaf-idgen/leaf/segment/fence"
)

// fence returns a fence that is closed at the end of the test.
func (p *place) fence(t *testing.T) *etcd.Fence {
	t.Helper()
	f, err := etcd.NewFence(p.config())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	})
	return f
}

func TestFenceConformance(t *testing.T) {
	ns := server.Etcd(t)
	var places atomic.Int64
	drivertest.RunClusterFence(t, func(t *testing.T) drivertest.FenceBackend {
		p := newPlace(t, ns.Servers, fmt.Sprintf("%s/%d", ns.Root, places.Add(1)))
		return drivertest.FenceBackend{
			Fence: p.fence(t),
			Other: func(t *testing.T) fence.Cluster { return p.fence(t) },
			Wipe:  p.wipe,
		}
	})
}

// TestFencePartlyWiped: what is left of an incarnation is not trusted.
func TestFencePartlyWiped(t *testing.T) {
	ns := server.Etcd(t)
	for i, tt := range []struct {
		name string
		lose string // below the prefix; all keys that begin so
	}{
		{"all entries", "/entries/"},
		{"the incarnation", "/incarnation"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p := newPlace(t, ns.Servers, fmt.Sprintf("%s/%d", ns.Root, i))
			f := p.fence(t)
			space, _, err := f.Open(short(t))
			if err != nil {
				t.Fatal(err)
			}
			e, err := f.Swap(short(t), space, "order", nil, 1000)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := p.raw.Delete(short(t), p.prefix+tt.lose, clientv3.WithPrefix()); err != nil {
				t.Fatal(err)
			}
			if e, ok, err := f.Read(short(t), space, "order"); !errors.Is(err, fence.ErrReplaced) {
				t.Errorf("Read = %+v, %v, %v; want ErrReplaced", e, ok, err)
			}
			for _, old := range []*fence.Entry{&e, nil} {
				if e, err := f.Swap(short(t), space, "order", old, 2000); !errors.Is(err, fence.ErrReplaced) {
					t.Errorf("Swap from %+v = %+v, %v; want ErrReplaced", old, e, err)
				}
			}
			next, created, err := f.Open(short(t))
			if err != nil || !created || next == space {
				t.Errorf("Open = %q, %v, %v; want another text than %q", next, created, err, space)
			}
		})
	}
}

// TestFenceOfAnotherLife: a cluster that was set up anew counts its revisions from
// the start again, and comes to the same ones.
func TestFenceOfAnotherLife(t *testing.T) {
	f, end := newPlace(t, server.OwnEtcd(t, 1).Servers(), "/f").fence(t), int64(1000)
	var entries [2]fence.Entry
	var spaces [2]string
	for life := range entries {
		if life == 1 {
			f, end = newPlace(t, server.OwnEtcd(t, 1).Servers(), "/f").fence(t), 500
		}
		var err error
		if spaces[life], _, err = f.Open(short(t)); err != nil {
			t.Fatal(err)
		}
		if entries[life], err = f.Swap(short(t), spaces[life], "order", nil, end); err != nil {
			t.Fatal(err)
		}
	}
	if entries[0].Version != entries[1].Version {
		t.Fatalf("the versions are %d and %d: the test proves nothing", entries[0].Version, entries[1].Version)
	}
	if e, err := f.Swap(short(t), spaces[0], "order", &entries[0], 2000); !errors.Is(err, fence.ErrReplaced) {
		t.Errorf("Swap in an earlier incarnation = %+v, %v; want ErrReplaced", e, err)
	}
	// As if from a snapshot: the incarnation is the same, the entry is not.
	if e, err := f.Swap(short(t), spaces[1], "order", &entries[0], 2000); !errors.Is(err, fence.ErrMoved) {
		t.Errorf("Swap from an entry of the same version and another end = %+v, %v; want ErrMoved", e, err)
	}
	if e, ok, err := f.Read(short(t), spaces[1], "order"); e != entries[1] || !ok || err != nil {
		t.Errorf("Read = %+v, %v, %v; want %+v", e, ok, err, entries[1])
	}
}

func TestFenceGarbage(t *testing.T) {
	ns := server.Etcd(t)
	p := newPlace(t, ns.Servers, ns.Root)
	f := p.fence(t)
	space, _, err := f.Open(short(t))
	if err != nil {
		t.Fatal(err)
	}
	for _, value := range []string{"", "x", "1.5", "-1", "99999999999999999999", fmt.Sprint(int64(segment.MaxMaxID) + 1)} {
		p.put(t, p.prefix+"/entries/"+space+"/order", value)
		e, ok, err := f.Read(short(t), space, "order")
		if err == nil || ok || !strings.Contains(err.Error(), "/entries/"+space+"/order") {
			t.Errorf("Read of %q = %+v, %v, %v; want an error that names the key", value, e, ok, err)
		}
	}
}

func TestFenceBlackHole(t *testing.T) {
	ns := server.Etcd(t)
	p := newPlace(t, ns.Servers, ns.Root)
	f := p.fence(t)
	space, _, err := f.Open(short(t))
	if err != nil {
		t.Fatal(err)
	}
	heal := p.partition()
	for name, call := range map[string]func(context.Context) error{
		"Open": func(c context.Context) error { _, _, err := f.Open(c); return err },
		"Read": func(c context.Context) error { _, _, err := f.Read(c, space, "order"); return err },
		"Swap": func(c context.Context) error { _, err := f.Swap(c, space, "order", nil, 7); return err },
	} {
		err := within(t, call)
		if err == nil || errors.Is(err, fence.ErrMoved) || errors.Is(err, fence.ErrReplaced) {
			t.Errorf("%s: %v; want an error that claims nothing", name, err)
		}
	}
	heal()
	eventually(t, "Open", func(c context.Context) error {
		again, created, err := f.Open(c)
		if err == nil && (created || again != space) {
			t.Errorf("Open after the partition = %q, %v; want %q", again, created, space)
		}
		return err
	})
}

// TestFenceAtMemberCutOff: a member that was cut off before the fence was made, and that
// clients still reach, knows none of it. What it knows begins no new incarnation, in which all
// entries would be lost.
func TestFenceAtMemberCutOff(t *testing.T) {
	e := server.OwnEtcdApart(t, 3)
	defer e.Kill() // three members that leave in good order take 6 s
	leader, err := e.Leader(short(t))
	if err != nil {
		t.Fatal(err)
	}
	cut := (leader + 1) % e.Len()
	if err := e.Partition(short(t), cut); err != nil {
		t.Fatal(err)
	}
	well, both := newPlace(t, []string{e.Addr(leader)}, "/f"), newPlace(t, []string{e.Addr(leader), e.Addr(cut)}, "/f")
	space, _, err := well.fence(t).Open(short(t))
	if err != nil {
		t.Fatal(err)
	}
	f := both.fence(t)
	for range 6 { // the calls go to one member after the other
		ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
		got, created, err := f.Open(ctx)
		cancel()
		if created || err == nil && got != space {
			t.Fatalf("Open = %q, %v, %v; the incarnation is %q", got, created, err, space)
		}
	}
	if again, created, err := well.fence(t).Open(short(t)); again != space || created || err != nil {
		t.Errorf("Open = %q, %v, %v; want %q", again, created, err, space)
	}
}
