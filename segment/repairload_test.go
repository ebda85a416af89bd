package segment_test

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leaf-idgen/leaf/segment"
)

// slowOnce makes the reply of the next Reserve arrive that much later.
func (s *store) slowOnce(d time.Duration) {
	s.set(func(s *store) {
		s.onReserve = func(_ context.Context, _ segment.Request, do func() (segment.Reservation, error)) (segment.Reservation, error) {
			s.set(func(s *store) { s.onReserve = nil })
			r, err := do()
			time.Sleep(d)
			return r, err
		}
	})
}

// TestRepairBesideALateLoad: the database loses commits while the reply of a load is on its
// way, and the reply arrives after the node has said what it holds. The repair does not know
// of that range, so the node does not issue from it.
func TestRepairBesideALateLoad(t *testing.T) {
	for name, c := range map[string]struct {
		late    int
		arrives time.Duration // after the row has moved
	}{
		"of the node that repairs": {0, 10 * time.Millisecond},
		"of another node":          {1, 3 * time.Second},
	} {
		late := c.late
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				fast, ids := newStore(row(10)), newLedger()
				slow := &store{Store: fast.Store} // the same database, seen by the node with the late reply
				var n [2]*segment.Allocator
				for i := range n {
					on := fast
					if i == late {
						on = slow
					}
					n[i] = node(t, on, nil, segment.Config{NodeID: string(rune('a' + i)), FixedStep: true, LoadTimeout: 10 * time.Second})
					ids.add(t, "before", drain(t, n[i], "order", 2)...)
					synctest.Wait()
				}
				if _, err := fast.Reserve(t.Context(), segment.Request{Tag: "order", Step: 10, Length: 10, Min: 1, Max: 10}); err != nil { // no node got the reply
					t.Fatal(err)
				}
				slow.slowOnce(c.arrives)
				ids.add(t, "before", drain(t, n[late], "order", 11)...) // asks for [51, 61)
				synctest.Wait()
				if at := fast.maxID(t, "order"); at != 61 {
					t.Fatalf("the row is at %d, want a load under way up to 61", at)
				}
				restored(fast, 1)
				if _, err := n[0].Repair(t.Context(), "order", 0); err != nil {
					t.Fatal(err)
				}
				ids.add(t, "the other one", drain(t, n[1-late], "order", 30)...)
				ids.add(t, "the one with the late reply", drain(t, n[late], "order", 30)...)
			})
		})
	}
}

// TestRepairBesideALateRefusal: a load reads the row before a repair moves it, and its reply
// arrives after the repair has ended. Nothing tells whether it shows the loss that was
// repaired or a later one: the tag latches, and the alarm says so. A second repair ends it.
func TestRepairBesideALateRefusal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fast, al := newStore(row(10)), newAlarms()
		slow := &store{Store: fast.Store}
		a := node(t, fast, nil, segment.Config{NodeID: "a", FixedStep: true, LoadTimeout: 10 * time.Second})
		b := node(t, slow, nil, segment.Config{NodeID: "b", FixedStep: true, LoadTimeout: 10 * time.Second, Alarms: al})
		drain(t, a, "order", 2)
		synctest.Wait()
		drain(t, b, "order", 2)
		time.Sleep(5 * time.Second)
		restored(fast, 1)
		slow.slowOnce(8 * time.Second)
		drain(t, b, "order", 11) // asks for a range; the reply is late
		if _, err := a.Repair(t.Context(), "order", 0); err != nil {
			t.Fatal(err)
		}
		time.Sleep(15 * time.Second)
		al.want(t, "regress order")
		if text := al.text("regress", "order"); !strings.Contains(text, "the load began before a repair of the tag ended") {
			t.Errorf("the alarm says %q", text)
		}
		if _, err := b.Repair(t.Context(), "order", 0); err != nil {
			t.Fatal(err)
		}
		al.want(t)
		next(t, b, "order")
	})
}
