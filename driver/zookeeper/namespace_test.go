package zookeeper_test

import (
	"bytes"
	"sync/atomic"
	"testing"

	"github.com/leaf-idgen/leaf/internal/test/proxy"
	"github.com/leaf-idgen/leaf/internal/test/server"
	"github.com/leaf-idgen/leaf/worker"
)

// TestLossIsToldBeforeAClaimEnds: a claim has read the namespace, perhaps from a server that is behind. Before it
// writes, a process whose last namespace is gone tells the registry that all fresh numbers must wait (rule U). The
// claim heeds that.
func TestLossIsToldBeforeAClaimEnds(t *testing.T) {
	t.Parallel()
	p := newPlace(t, server.ZooKeeper(t))
	survivor := p.original(t)
	declare(t, survivor)
	wired, wire := p.behind(t)
	late := wired.original(t)
	var told atomic.Bool
	wire.SetHook(func(from proxy.Side, data []byte) proxy.Action {
		if from == proxy.Client && bytes.Contains(data, []byte(`"claimed":true`)) && told.CompareAndSwap(false, true) {
			req := request("10.0.0.9:8080")
			req.Quiet = 0
			req.Previous = &worker.Previous{Number: 5, Nonce: "of a namespace that is gone", Inner: now, Incarnation: "gone", Quiet: now + quiet}
			if r, err := survivor.Claim(ctx(t), req); err != nil || r.Floor < now+quiet {
				t.Errorf("Claim of the survivor = %+v, %v", r, err)
			}
		}
		return proxy.Pass
	})
	if got := claim(t, late, request(addr)); !told.Load() || got.Floor < now+quiet {
		t.Errorf("Claim = %+v; want a floor of at least %d, which the registry has been told", got, now+quiet)
	}
}
