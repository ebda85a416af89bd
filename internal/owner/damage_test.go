package owner_test

import (
	"testing"
	"time"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/internal/owner"
)

// TestDamagedSlot: a slot whose record cannot be read has no owner. The alarm says to delete the record. When it is deleted,
// a node takes the slot.
func TestDamagedSlot(t *testing.T) {
	run(t, func(c *cluster) {
		al := &alarms{active: map[string]leaf.Alarm{}}
		c.start("a", func(cfg *owner.Config) { cfg.Alarms = al })
		c.start("b")
		c.settle(time.Minute)
		const damaged = 1024 + 3
		c.registry.Garble(damaged)
		c.watch(lease)
		if al.raised("slots damaged") {
			t.Error("the alarm is raised at once: a write in two steps looks like this for a moment")
		}
		c.until(2*lease, "the alarm begins", func() bool { return al.raised("slots damaged") })
		c.watch(time.Minute)
		if n := c.check(); n != slots-1 {
			t.Errorf("%d slots have an owner, want all but one", n)
		}
		c.registry.DeleteClaim(damaged)
		c.until(5*lease, "the slot has an owner", func() bool { return c.check() == slots })
		c.until(2*pause, "the alarm ends", func() bool { return !al.raised("slots damaged") })

		c.registry.Garble(damaged)
		c.watch(lease)
		if al.raised("slots damaged") {
			t.Error("the alarm of a second damage is raised at once")
		}
	})
}
