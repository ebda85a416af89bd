package etcd_test

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"

	"github.com/leaf-idgen/leaf/driver/etcd"
	"github.com/leaf-idgen/leaf/internal/test/proxy"
	"github.com/leaf-idgen/leaf/worker"
)

// place is an empty prefix on an etcd, behind one proxy per node.
type place struct {
	prefix  string
	proxies []*proxy.Proxy
	raw     *clientv3.Client // past the proxies and the driver
}

// newPlace returns the place with that prefix on servers.
func newPlace(t *testing.T, servers []string, prefix string) *place {
	t.Helper()
	raw, err := clientv3.New(clientv3.Config{Endpoints: servers, Logger: zap.NewNop()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { raw.Close() })
	p := &place{prefix: prefix, raw: raw}
	for _, s := range servers {
		px, err := proxy.Start(s)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(px.Close)
		p.proxies = append(p.proxies, px)
	}
	return p
}

// config leads through the proxies.
func (p *place) config() etcd.Config {
	cfg := etcd.Config{Prefix: p.prefix, Lease: 2 * time.Second}
	for _, px := range p.proxies {
		cfg.Endpoints = append(cfg.Endpoints, px.Addr())
	}
	return cfg
}

// open returns a registry that the caller closes.
func (p *place) open(t *testing.T) worker.Registry {
	t.Helper()
	records, err := etcd.NewRecords(p.config())
	if err != nil {
		t.Fatal(err)
	}
	return worker.NewPool(records)
}

// records returns a Records that is closed at the end of the test.
func (p *place) records(t *testing.T) *etcd.Records {
	t.Helper()
	records, err := etcd.NewRecords(p.config())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := records.Close(); err != nil {
			t.Error(err)
		}
	})
	return records
}

// partition swallows everything until heal.
func (p *place) partition() (heal func()) {
	for _, px := range p.proxies {
		px.Swallow(proxy.Client, proxy.Server)
	}
	return func() {
		for _, px := range p.proxies {
			px.Swallow()
		}
	}
}

func (p *place) claimKey(number int64) string {
	return p.prefix + "/claims/" + strconv.FormatInt(number, 10)
}

func (p *place) deleteClaim(t *testing.T, number int64) {
	t.Helper()
	if r, err := p.raw.Delete(short(t), p.claimKey(number)); err != nil || r.Deleted != 1 {
		t.Fatalf("delete claim %d: %+v, %v", number, r, err)
	}
}

func (p *place) forget(t *testing.T) {
	t.Helper()
	for _, key := range []string{"/claims/", "/bounds/"} {
		if _, err := p.raw.Delete(short(t), p.prefix+key, clientv3.WithPrefix()); err != nil {
			t.Fatal(err)
		}
	}
}

func (p *place) reset(t *testing.T, command string) {
	t.Helper()
	key, ok := strings.CutPrefix(command, "etcdctl del ")
	if !ok {
		t.Fatalf("command %q", command)
	}
	if r, err := p.raw.Delete(short(t), key); err != nil || r.Deleted != 1 {
		t.Fatalf("delete the namespace: %+v, %v", r, err)
	}
}

func (p *place) overwrite(t *testing.T, number int64, nonce string) {
	t.Helper()
	p.put(t, p.claimKey(number), fmt.Sprintf(`{"address":"10.9.9.9:1","nonce":%q,"floor":0,"released":false}`, nonce))
}

func (p *place) put(t *testing.T, key, value string) {
	t.Helper()
	if _, err := p.raw.Put(short(t), key, value); err != nil {
		t.Fatal(err)
	}
}

func (p *place) wipe(t *testing.T) {
	t.Helper()
	if _, err := p.raw.Delete(short(t), p.prefix, clientv3.WithPrefix()); err != nil {
		t.Fatal(err)
	}
}

// keys returns all keys below the prefix that are on a lease or not.
func (p *place) keys(t *testing.T, leased bool) (keys []string) {
	t.Helper()
	r, err := p.raw.Get(short(t), p.prefix, clientv3.WithPrefix())
	if err != nil {
		t.Fatal(err)
	}
	for _, kv := range r.Kvs {
		if (kv.Lease != 0) == leased {
			keys = append(keys, strings.TrimPrefix(string(kv.Key), p.prefix))
		}
	}
	return keys
}

func short(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	t.Cleanup(cancel)
	return ctx
}

// within gives call 150 ms, and expects it to return soon after.
func within(t *testing.T, call func(context.Context) error) error {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 150*time.Millisecond)
	defer cancel()
	start := time.Now()
	err := call(ctx)
	if took := time.Since(start); took > 2*time.Second {
		t.Errorf("a call with 150 ms returned after %v", took)
	}
	return err
}

// eventually repeats a call until it succeeds.
func eventually(t *testing.T, what string, call func(context.Context) error) {
	t.Helper()
	all, cancel := context.WithTimeout(t.Context(), 40*time.Second)
	defer cancel()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		one, cancel := context.WithTimeout(all, time.Second)
		err := call(one)
		cancel()
		if err == nil {
			return
		}
		select {
		case <-all.Done():
			t.Fatalf("%s: still %v", what, err)
		case <-tick.C:
		}
	}
}
