package rules_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/leaf-idgen/leaf/driver/etcd"
	"github.com/leaf-idgen/leaf/internal/config"
	"github.com/leaf-idgen/leaf/internal/test/port"
	"github.com/leaf-idgen/leaf/internal/test/server"
	"github.com/leaf-idgen/leaf/worker"
)

// snowflakes are the settings of a node that takes worker IDs from etcd, and renews often.
func snowflakes(t *testing.T, registry string) config.Config {
	t.Helper()
	c := settings(t)
	c.Segment.Enable, c.Snowflake.Enable = false, true
	c.Snowflake.Registry, c.Snowflake.Addresses, c.Snowflake.Force = config.RegistryEtcd, []string{registry}, true
	c.Snowflake.Lease, c.Snowflake.Renew, c.Snowflake.Horizon, c.Snowflake.Margin = 4*time.Second, 200*time.Millisecond, 6*time.Second, 200*time.Millisecond
	c.Snowflake.PeerInterval, c.Node.Discovery = time.Second, "off"
	return c
}

// registryGone: the registry of worker IDs is cut off, and the time bound is used up. Then a
// second node finds no free number.
func registryGone(t *testing.T) {
	ns := server.Etcd(t)
	link := through(t, ns.Servers[0])
	c := snowflakes(t, link.Addr())
	c.Snowflake.Name = strings.Trim(strings.ReplaceAll(ns.Root, "/", "-"), "-")
	c.Snowflake.WorkerRange = "7-7"
	c.HTTP.Addr = port.Unused(t)
	c.Snowflake.Address = c.HTTP.Addr
	declareNew(t, c)
	a, stop := start(t, c)
	p := newPrometheus(t, of(a))
	traffic := func() { take(t, a, "/api/snowflake/get/any", 1) }
	await(t, p, `leaf_snowflake_ready 1`, traffic)
	p.healthy(traffic)

	alerts := []string{"LeafRegistry", "LeafBoundLow", "LeafSnowflakeNotReady"}
	cutOff(link)
	await(t, p, `leaf_snowflake_ready 0`, nothing)
	p.fire(nothing, alerts...)
	if err := link.Accept(); err != nil {
		t.Fatal(err)
	}
	await(t, p, `leaf_snowflake_ready 1`, nothing)
	await(t, p, `leaf_alarms_active{code="registry"} 0`, nothing)
	p.clear(traffic, alerts...)

	second := snowflakes(t, link.Addr())
	second.Snowflake.Name, second.Snowflake.WorkerRange = c.Snowflake.Name, c.Snowflake.WorkerRange
	second.HTTP.Addr = port.Unused(t)
	second.Snowflake.Address = second.HTTP.Addr
	b, _ := start(t, second)
	q := newPrometheus(t, of(b))
	await(t, q, `leaf_alarms_active{code="claim"} 1`, nothing)
	q.fire(nothing, "LeafClaim")
	stop()
	await(t, q, `leaf_snowflake_ready 1`, nothing)
	q.clear(nothing, "LeafClaim")
}

// clocksDiffer: the clock of the only other node is wrong. That node is a claim to be one, in
// the registry, and a server of the time: in one process all clocks are the same.
func clocksDiffer(t *testing.T) {
	ns := server.Etcd(t)
	name := strings.Trim(strings.ReplaceAll(ns.Root, "/", "-"), "-")
	var ahead atomic.Int64 // ms
	clock := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_ = json.NewEncoder(w).Encode(map[string]int64{"unix_ms": time.Now().UnixMilli() + ahead.Load()})
	}))
	t.Cleanup(clock.Close)
	other, err := etcd.NewRecords(etcd.Config{Endpoints: ns.Servers, Prefix: "/leaf/worker/" + name, Lease: 5 * time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = other.Close() })
	address := clock.Listener.Addr().String()

	c := snowflakes(t, ns.Servers[0])
	c.Snowflake.Name, c.HTTP.Addr = name, port.Unused(t)
	c.Snowflake.Address = c.HTTP.Addr
	declareNew(t, c)
	if err := other.Announce(t.Context(), worker.Peer{Address: address, Clock: address, Nonce: "other", Number: 9}); err != nil {
		t.Fatal(err)
	}
	a, _ := start(t, c)
	p := newPrometheus(t, of(a))
	await(t, p, `leaf_snowflake_ready 1`, nothing)
	await(t, p, `leaf_snowflake_peers_answered 1`, nothing)
	p.healthy(nothing)

	ahead.Store(20_000)
	await(t, p, `leaf_alarms_active{code="clock"} 1`, nothing)
	p.fire(nothing, "LeafClock", "LeafClockOffset")
	ahead.Store(0)
	await(t, p, `leaf_alarms_active{code="clock"} 0`, nothing)
	p.clear(nothing, "LeafClock", "LeafClockOffset")
}
