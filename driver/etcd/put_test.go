package etcd_test

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/internal/test/server"
	"github.com/leaf-idgen/leaf/worker"
)

var space = worker.Namespace{Name: "prod", Fingerprint: "layout"}

// declare makes the namespace known to records.
func declare(t *testing.T, records worker.Records) {
	t.Helper()
	if _, err := records.Namespace(short(t), &worker.StoredNamespace{Namespace: space}); err != nil {
		t.Fatal(err)
	}
}

func put(t *testing.T, records worker.Records, r worker.Record) worker.Record {
	t.Helper()
	version, err := records.Put(short(t), r)
	if err != nil {
		t.Fatal(err)
	}
	r.Version = version
	return r
}

// TestPutCompares: every part of what a record was read with is a condition.
func TestPutCompares(t *testing.T) {
	ns := server.Etcd(t)
	for i, tt := range []struct {
		name   string
		fresh  bool // the number has no record before
		meddle func(t *testing.T, p *place)
	}{
		{"claim written", false, func(t *testing.T, p *place) { p.overwrite(t, 7, "mine") }},
		{"claim deleted", false, func(t *testing.T, p *place) { p.deleteClaim(t, 7) }},
		{"T written", false, func(t *testing.T, p *place) { p.put(t, p.prefix+"/bounds/7", "100") }},
		{"both deleted", false, func(t *testing.T, p *place) { p.wipe(t) }},
		{"claim appears", true, func(t *testing.T, p *place) { p.overwrite(t, 7, "other") }},
		{"T appears", true, func(t *testing.T, p *place) { p.put(t, p.prefix+"/bounds/7", "100") }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p := newPlace(t, ns.Servers, fmt.Sprintf("%s/%d", ns.Root, i))
			records := p.records(t)
			declare(t, records)
			r := worker.Record{Number: 7, Nonce: "mine", Bound: 100}
			if !tt.fresh {
				r = put(t, records, r)
			}
			tt.meddle(t, p)
			before := p.keys(t, false)
			r.Bound = 200
			if version, err := records.Put(short(t), r); !errors.Is(err, worker.ErrLost) {
				t.Errorf("Put = %q, %v; want ErrLost", version, err)
			}
			if after := p.keys(t, false); !slices.Equal(before, after) {
				t.Errorf("a refused Put changed the keys from %q to %q", before, after)
			}
		})
	}
}

// TestPutOfAnotherLife: an etcd that was set up anew comes to the same revisions, and
// what a process read in the first life must not be taken for what is there now.
func TestPutOfAnotherLife(t *testing.T) {
	var lives [2]worker.Record
	var last worker.Records
	for i := range lives {
		records := newPlace(t, server.OwnEtcd(t, 1).Servers(), "/w").records(t)
		declare(t, records)
		lives[i] = put(t, records, worker.Record{Number: 7, Nonce: fmt.Sprint("process ", i), Bound: 100})
		last = records
	}
	first, _, _ := strings.Cut(lives[0].Version, " ")
	second, _, _ := strings.Cut(lives[1].Version, " ")
	if first != second {
		t.Fatalf("the revisions are %s and %s: the test proves nothing", first, second)
	}
	if version, err := last.Put(short(t), lives[0]); !errors.Is(err, worker.ErrLost) {
		t.Errorf("Put with the version of an earlier life = %q, %v; want ErrLost", version, err)
	}
	put(t, last, lives[1])
}

// TestPutForeignVersion: a version that the driver did not make proves nothing.
func TestPutForeignVersion(t *testing.T) {
	ns := server.Etcd(t)
	p := newPlace(t, ns.Servers, ns.Root)
	records := p.records(t)
	declare(t, records)
	for _, version := range []string{"x", "1", "1/2", "1/x {}", "01/2 {}"} {
		if _, err := records.Put(short(t), worker.Record{Number: 7, Version: version}); err == nil || errors.Is(err, worker.ErrLost) {
			t.Errorf("Put with version %q: %v", version, err)
		}
	}
	if keys := p.keys(t, false); !slices.Equal(keys, []string{"/incarnation", "/namespace"}) {
		t.Errorf("keys %q", keys)
	}
}

// TestOnlyPeersAreLeased is rule D: claims and T survive every session.
func TestOnlyPeersAreLeased(t *testing.T) {
	ns := server.Etcd(t)
	p := newPlace(t, ns.Servers, ns.Root)
	records := p.records(t)
	declare(t, records)
	put(t, records, put(t, records, worker.Record{Number: 7, Nonce: "mine", Bound: 100}))
	if err := records.Announce(short(t), worker.Peer{Nonce: "mine"}); err != nil {
		t.Fatal(err)
	}
	if keys := p.keys(t, true); !slices.Equal(keys, []string{"/peers/mine"}) {
		t.Errorf("keys on a lease: %q", keys)
	}
	if keys := p.keys(t, false); !slices.Equal(keys, []string{"/bounds/7", "/claims/7", "/incarnation", "/namespace"}) {
		t.Errorf("keys on none: %q", keys)
	}
}

// TestForeignValues: what this version does not understand is named, never guessed at,
// and keeps no other number from being read. A field that it does not know is overlooked.
func TestForeignValues(t *testing.T) {
	ns := server.Etcd(t)
	const claim = `{"address":"a","nonce":"n","floor":1,"released":false}`
	for i, tt := range []struct{ name, key, value string }{
		{"claim of a later format", "/claims/7", strings.Replace(claim, "}", `,"format":1}`, 1)},
		{"claim is no JSON", "/claims/7", "x"},
		{"claim with a field of a later version", "/claims/7", strings.Replace(claim, "}", `,"region":"eu"}`, 1)},
		{"claim with more after it", "/claims/7", claim + claim},
		{"claim without T", "/claims/9", claim},
		{"claim of no number", "/claims/x", claim},
		{"claim of a negative number", "/claims/-1", claim},
		{"number written in another way", "/claims/07", claim},
		{"key below a claim", "/claims/7/x", claim},
		{"T is no number", "/bounds/7", "soon"},
		{"T is a fraction", "/bounds/7", "1.5"},
		{"T of a negative number", "/bounds/-1", "1"},
		{"T of no number", "/bounds/", "1"},
		{"namespace is no JSON", "/namespace", "prod"},
		{"namespace of a later format", "/namespace", `{"name":"prod","fingerprint":"layout","issue_from":0,"format":1}`},
		{"namespace with a field of a later version", "/namespace", `+,"v":2`},
		{"peer is no JSON", "/peers/x", "x"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p := newPlace(t, ns.Servers, fmt.Sprintf("%s/%d", ns.Root, i))
			records := p.records(t)
			declare(t, records)
			put(t, records, worker.Record{Number: 7, Nonce: "mine", Bound: 100})
			value := tt.value
			if more, ok := strings.CutPrefix(value, "+"); ok {
				got, err := p.raw.Get(t.Context(), p.prefix+tt.key)
				if err != nil {
					t.Fatal(err)
				}
				value = strings.Replace(string(got.Kvs[0].Value), "}", more+"}", 1)
			}
			p.put(t, p.prefix+tt.key, value)
			put(t, records, worker.Record{Number: 8, Nonce: "mine", Bound: 100})
			_, err := records.Namespace(short(t), nil)
			all, errList := records.List(short(t))
			peers, errPeers := records.Peers(short(t))
			if errList != nil || errPeers != nil || len(peers) > 0 || !slices.ContainsFunc(all, func(r worker.Record) bool { return r.Number == 8 && r.Nonce == "mine" }) {
				t.Fatalf("List = %+v, %v; Peers = %+v, %v", all, errList, peers, errPeers)
			}
			named := err != nil && errors.Is(err, worker.ErrForeign) && strings.Contains(err.Error(), p.prefix+tt.key) ||
				slices.ContainsFunc(all, func(r worker.Record) bool { return strings.Contains(r.Damage, p.prefix+tt.key) })
			if want := !strings.Contains(tt.name, "with a field") && !strings.HasPrefix(tt.name, "peer"); named != want {
				t.Errorf("it is named: %t, want %t: %+v, %v", named, want, all, err)
			}
		})
	}
}

// TestLostReplies cuts the reply to every third claim or renewal while eight processes
// come and go. What they hold at any time is theirs alone.
func TestLostReplies(t *testing.T) {
	ns := server.Etcd(t)
	p := newPlace(t, ns.Servers, ns.Root)
	var mu sync.Mutex
	holders := map[int64]string{}
	var lost atomic.Int64 // calls whose outcome nobody knows
	var group sync.WaitGroup
	for node := range 8 {
		group.Go(func() {
			pool := p.open(t)
			defer pool.Close()
			for life := range 3 {
				req := worker.Request{
					Namespace: space, Address: fmt.Sprintf("10.0.0.%d:1", node), Nonce: fmt.Sprint(node, "-", life),
					Numbers: leaf.Range{Lo: 0, Hi: 12}, Now: 1000, Bound: 2000, Margin: 10,
				}
				var r worker.Record
				cut := func(wanted bool) {
					if wanted {
						p.proxies[0].CutReplyAfter(func(b []byte) bool { return bytes.Contains(b, []byte("/bounds/")) })
					}
				}
				cut(node%3 == 0)
				for attempt := 0; ; attempt++ {
					var err error
					if r, err = pool.Claim(short(t), req); err == nil {
						break
					}
					if lost.Add(1); attempt == 100 {
						t.Errorf("node %d: Claim: %v", node, err)
						return
					}
				}
				mu.Lock()
				if other, held := holders[r.Number]; held {
					t.Errorf("number %d is held by %s and %s", r.Number, other, req.Nonce)
				}
				holders[r.Number] = req.Nonce
				mu.Unlock()
				for i := range 6 {
					cut(i%3 == 2)
					next, err := pool.Renew(short(t), r, int64(3000+100*i))
					if errors.Is(err, worker.ErrLost) {
						t.Errorf("node %d: Renew: %v", node, err)
					}
					if err == nil {
						r = next
					} else {
						lost.Add(1)
					}
				}
				mu.Lock()
				delete(holders, r.Number)
				mu.Unlock()
				for range 100 {
					err := pool.Release(short(t), r, 1000)
					if err == nil || errors.Is(err, worker.ErrLost) { // lost: the first one was carried out
						break
					}
				}
			}
		})
	}
	group.Wait()
	p.proxies[0].SetHook(nil)
	if lost.Load() < 10 {
		t.Errorf("only %d calls had no answer: the test proves little", lost.Load())
	}
	pool := p.open(t)
	defer pool.Close()
	records, err := pool.List(short(t))
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range records {
		if !r.Released || r.Bound != 1000 {
			t.Errorf("at the end %+v; want it released with T 1000", r)
		}
	}
}
