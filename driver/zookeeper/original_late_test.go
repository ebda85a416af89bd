package zookeeper_test

import (
	"fmt"
	"testing"

	"github.com/leaf-idgen/leaf/internal/test/server"
)

// TestOriginalRenewalArrivesLate: a renewal of ours that had no answer arrives before any request of the next
// one, such as between the two reads that look for it. The claim is ours all the same.
func TestOriginalRenewalArrivesLate(t *testing.T) {
	t.Parallel()
	p := newPlace(t, server.ZooKeeper(t))
	direct := p.original(t)
	declare(t, direct)
	far, wire := p.behind(t)
	o := far.original(t)
	own := claim(t, o, request(addr))
	requests := 0
	for nth := int64(1); ; nth++ {
		late, err := direct.Renew(ctx(t), own, own.Bound+1) // has no answer: own stays
		if err != nil {
			t.Fatal(err)
		}
		arrived := false
		stopBefore(wire, func(n, _ int64, _ bool) bool { return n == nth }, func() {
			arrived = true
			if late, err = direct.Renew(ctx(t), late, late.Bound+1); err != nil {
				t.Error(err)
			}
		})
		now, err := o.Renew(ctx(t), own, own.Bound+10)
		wire.SetHook(nil)
		if err != nil {
			t.Fatalf("a renewal arrived before request %d of the next one: %v", nth, err)
		}
		if now.Bound < late.Bound {
			t.Errorf("request %d: the bound is %d, and %d was stored", nth, now.Bound, late.Bound)
		}
		if own = now; !arrived {
			break
		}
		requests++
	}
	if requests < 5 {
		t.Error(fmt.Sprint("a renewal that looks for an earlier one has only ", requests, " requests"))
	}
}
