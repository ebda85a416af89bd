package owner_test

import (
	"testing"
	"time"
)

// A registry on a busy machine needs half a second for a write. The nodes share all slots, and no term ends.
func TestBusyRegistry(t *testing.T) {
	run(t, func(c *cluster) {
		slow := func(f *faults) { f.answersAfter, f.listsAfter = 550*time.Millisecond, 100*time.Millisecond }
		a := c.start("a")
		a.set(slow)
		c.settle(time.Minute)
		b := c.start("b")
		b.set(slow)
		c.until(time.Minute, "it has a slot", func() bool { return len(b.owned()) > 0 })
		c.watch(20 * lease) // for its others
		before := len(b.owned())
		for range 600 {
			if time.Sleep(100 * time.Millisecond); c.check() != slots || len(b.owned()) != before {
				t.Fatalf("a has %v, b has %v, before %d", a.owned(), b.owned(), before)
			}
		}
	})
}

// A write that hangs, as on a connection that leads nowhere any more, does not cost an owner its slots.
func TestWriteThatHangs(t *testing.T) {
	run(t, func(c *cluster) {
		a := c.start("a")
		c.settle(time.Minute)
		for range 40 {
			a.set(func(f *faults) { f.hang = 1 })
			for range 73 {
				if time.Sleep(47 * time.Millisecond); c.check() != slots {
					t.Fatalf("a has %v", a.owned())
				}
			}
		}
	})
}
