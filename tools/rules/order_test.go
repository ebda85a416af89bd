package rules_test

import (
	"testing"
	"time"

	"github.com/leaf-idgen/leaf/internal/manage"
	"github.com/leaf-idgen/leaf/segment"
)

// ownerUnreached: the node that owns a tag in strict order renews its slots, and is not where it says that it is.
func ownerUnreached(t *testing.T) {
	c, _ := database(t, "order")
	c.Order.Lease, c.Order.MaxWait = time.Second, 200*time.Millisecond
	c.Node.Weight = 1
	a, _ := start(t, c)
	p := newPrometheus(t, of(a))
	traffic := func() { take(t, a, "/api/segment/get/order", 1) }
	await(t, p, `leaf_segment_ready 1`, traffic)
	strict := segment.OrderStrict
	if _, err := manage.Ask(t.Context(), a.Backend(), manage.SetTag{Name: "order", Change: segment.Change{Order: &strict}}); err != nil {
		t.Fatal(err)
	}
	await(t, p, `leaf_order_slots 64`, traffic)
	p.healthy(traffic)

	away := c
	away.DataDir, away.Node.Weight = shortDir(t), 1000
	away.Node.Advertise = "127.0.0.9" // its servers listen on 127.0.0.1
	b, stop := start(t, away)
	await(t, newPrometheus(t, of(b)), `leaf_order_slots 6`, func() { take(t, b, "/api/segment/get/order", 1) })
	p.fire(traffic, "LeafOrderForwarded")
	stop()
	await(t, p, `leaf_order_slots 64`, traffic)
	p.clear(traffic, "LeafOrderForwarded")
}
