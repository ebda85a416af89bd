package etcd_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/leaf-idgen/leaf/driver/etcd"
	"github.com/leaf-idgen/leaf/internal/test/proxy"
	"github.com/leaf-idgen/leaf/internal/test/server"
	"github.com/leaf-idgen/leaf/segment/fence"
	"github.com/leaf-idgen/leaf/worker"
)

// TestTwoClusters: the endpoints lead to two clusters, and the calls go to one and to the other
// in turn. Both would give the same numbers: no claim is confirmed, and a claim that was made while only
// one of them answered is lost.
func TestTwoClusters(t *testing.T) {
	a, b := newPlace(t, server.OwnEtcd(t, 1).Servers(), "/w"), newPlace(t, server.OwnEtcd(t, 1).Servers(), "/w")
	for _, p := range []*place{a, b} {
		declare(t, p.records(t))
	}
	both := &place{prefix: a.prefix, proxies: append(a.proxies, b.proxies...)}
	b.proxies[0].Refuse()
	records := both.records(t)
	var ns *worker.StoredNamespace
	eventually(t, "Namespace", func(c context.Context) (err error) { ns, err = records.Namespace(c, nil); return err })
	own := put(t, records, worker.Record{Number: 0, Nonce: "mine", Bound: 100, Incarnation: ns.Incarnation})
	if err := b.proxies[0].Accept(); err != nil {
		t.Fatal(err)
	}
	var err error
	for ctx := short(t); ctx.Err() == nil; {
		if _, err = worker.NewPool(records).Renew(ctx, own, 200); errors.Is(err, worker.ErrLost) {
			break
		}
	}
	if !errors.Is(err, worker.ErrLost) || !strings.Contains(err.Error(), "two etcd clusters") {
		t.Errorf("Renew = %v; want ErrLost that names two clusters", err)
	}
	for range 4 {
		if list, err := records.List(short(t)); err == nil {
			t.Errorf("List = %+v beside another cluster", list)
		}
	}
	for range 4 {
		r := worker.Record{Number: 1, Nonce: "new", Bound: 100, Incarnation: ns.Incarnation}
		if version, err := both.records(t).Put(short(t), r); err == nil {
			t.Errorf("Put of a node that has just started = %q beside another cluster", version)
		}
	}
	f := both.fence(t)
	for range 4 {
		if space, created, err := f.Open(short(t)); err == nil && created {
			t.Errorf("Open = %q, a new incarnation beside another cluster", space)
		}
	}
	if _, _, err := f.Open(short(t)); err == nil || errors.Is(err, fence.ErrReplaced) {
		t.Errorf("Open = %v; want an error that claims nothing", err)
	}
}

// TestAddressThatSwallows: one of two addresses takes connections and never answers. It holds the first
// call up for a while, and not until the time of the call is over.
func TestAddressThatSwallows(t *testing.T) {
	p := newPlace(t, server.OwnEtcd(t, 1).Servers(), "/w")
	both := &place{prefix: p.prefix, proxies: append(p.proxies, newPlace(t, []string{p.proxies[0].Addr()}, "/w").proxies...)}
	both.proxies[1].Swallow(proxy.Client, proxy.Server)
	declare(t, both.records(t))
}

// TestOtherCluster: the endpoint leads to another cluster from one moment on, as after a restore. For
// a minute the calls say so, and claim nothing.
func TestOtherCluster(t *testing.T) {
	a, b := server.OwnEtcd(t, 1), server.OwnEtcd(t, 1)
	p := newPlace(t, a.Servers(), "/w")
	declare(t, p.records(t))
	declare(t, newPlace(t, b.Servers(), "/w").records(t))
	records := p.records(t)
	if _, err := records.List(short(t)); err != nil {
		t.Fatal(err)
	}
	p.proxies[0].Retarget(strings.TrimPrefix(b.Servers()[0], "http://"))
	p.proxies[0].Cut()
	var err error
	for ctx := short(t); ctx.Err() == nil; {
		if _, err = records.List(ctx); err == nil || strings.Contains(err.Error(), "another etcd cluster") {
			break
		}
	}
	if err == nil || errors.Is(err, worker.ErrLost) {
		t.Errorf("List at another cluster: %v; want an error that is not ErrLost", err)
	}
}

// TestSeenClusters: an answer counts only when no other cluster has answered for a minute.
func TestSeenClusters(t *testing.T) {
	type answer struct {
		after   time.Duration
		cluster uint64
		want    string // "", other, two
	}
	const second = time.Second
	for _, tt := range []struct {
		name    string
		answers []answer
	}{
		{"one", []answer{{0, 1, ""}, {second, 1, ""}}},
		{"none is named", []answer{{0, 1, ""}, {second, 0, ""}, {second, 1, ""}}},
		{"restored", []answer{{0, 1, ""}, {second, 2, "other"}, {59 * second, 2, "other"}, {second, 2, ""}}},
		{"restored twice", []answer{{0, 1, ""}, {second, 2, "other"}, {61 * second, 2, ""}, {second, 1, "other"}, {61 * second, 1, ""}}},
		{"in turn", []answer{{0, 1, ""}, {second, 2, "other"}, {second, 1, "two"}, {second, 1, "two"}, {second, 2, "two"}, {59 * second, 1, "two"}}},
		{"in turn until the list is mended", []answer{{0, 1, ""}, {second, 2, "other"}, {second, 1, "two"}, {61 * second, 1, ""}, {second, 1, ""}}},
		{"three", []answer{{0, 1, ""}, {second, 2, "other"}, {second, 3, "two"}}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			see := etcd.SeeClusters()
			at := time.Now()
			for i, a := range tt.answers {
				at = at.Add(a.after)
				err := see(a.cluster, at)
				got := ""
				switch {
				case errors.Is(err, worker.ErrLost):
					got = "two"
				case err != nil:
					got = "other"
				}
				if got != a.want {
					t.Errorf("answer %d: %v; want %q", i, err, a.want)
				}
			}
		})
	}
}
