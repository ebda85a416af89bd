package segment_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/driver/memory"
	"github.com/leaf-idgen/leaf/segment"
)

// TestRowBehindATagOfAnotherOwner: the database loses the ranges of a tag in strict order, and its next owner knows none
// of them. The owner before, and a node that took calls to it, load nothing of the tag. They find the loss when they read
// the rows, and all nodes stop the tag.
func TestRowBehindATagOfAnotherOwner(t *testing.T) {
	for name, hears := range map[string]bool{"the owner before is there": false, "it is gone, and another node took calls to it": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, o, a, b := pair(t, strictRow(10))
				end, backup := ownerIssues(t, s, o, a, 95)
				if hears {
					node(t, s, nil, segment.Config{NodeID: "c", Terms: o.node("c")}).Heard("order", end)
					o.end()
					if err := a.Close(t.Context()); err != nil {
						t.Fatal(err)
					}
				}
				o.own("b")
				s.Put(backup)
				nextOf(t, b) // an ID that is in use: no node can know that yet
				time.Sleep(2 * time.Minute)
				if id, err := b.Next(t.Context(), "order"); err == nil {
					t.Errorf("%d was issued twice, two minutes after the loss", id)
				} else {
					wantErr(t, err, leaf.ErrRegress)
				}
			})
		})
	}
}

// TestRowBehindAFullStock: a caller has left while a range was loaded for its batch, so there is no room for a further one.
// The node finds all the same that the row went back.
func TestRowBehindAFullStock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStore(row(10))
		a := node(t, s, nil, segment.Config{NodeID: "a", FixedStep: true})
		b := node(t, s, nil, segment.Config{NodeID: "b", FixedStep: true})
		drain(t, a, "order", 95)
		synctest.Wait() // the next range is there
		s.set(func(s *store) {
			s.onReserve = func(_ context.Context, _ segment.Request, do func() (segment.Reservation, error)) (segment.Reservation, error) {
				time.Sleep(time.Second)
				return do()
			}
		})
		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		if _, err := a.NextN(ctx, "order", 30); err == nil {
			t.Fatal("a batch was served that no range is there for")
		}
		time.Sleep(2 * time.Second)
		s.heal()
		restored(s, 1)
		drain(t, b, "order", 5)
		time.Sleep(2 * time.Minute)
		if !a.Mark("order").Latched || !b.Mark("order").Latched {
			t.Errorf("a: %+v, b: %+v, two minutes after the row went back; want both latched", a.Mark("order"), b.Mark("order"))
		}
	})
}

// TestRowBehindAPeriod: a node has read the row in today's period, and is asked for nothing. When the row is back in
// yesterday's, it finds that, so a node that starts later does not begin today anew.
func TestRowBehindAPeriod(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStore(daily())
		gone := node(t, s, nil, segment.Config{NodeID: "gone"})
		used := nextOf(t, gone)
		node(t, s, nil, segment.Config{NodeID: "idle"})
		if err := gone.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		s.Put(daily())
		time.Sleep(2 * time.Minute)
		if id, err := node(t, s, nil, segment.Config{NodeID: "new"}).Next(t.Context(), "order"); err == nil {
			t.Errorf("%d was issued, two minutes after the row went back; %d is in use", id, used)
		} else {
			wantErr(t, err, leaf.ErrRegress)
		}
	})
}

// TestRowBehindWhereAReplicaWas: a replica that lags has answered a reading, and a load has shown that the row is not there.
// When the row itself goes back to that number later, the node finds it.
func TestRowBehindWhereAReplicaWas(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStore(row(10))
		a := node(t, s, nil, segment.Config{FixedStep: true})
		drain(t, a, "order", 25)
		synctest.Wait()
		s.set(func(s *store) {
			s.rows = func([]segment.Row) []segment.Row { return []segment.Row{{Tag: "order", MaxID: 11, Step: 10}} }
		})
		time.Sleep(3 * time.Minute)
		s.heal()
		time.Sleep(2 * time.Minute)
		if a.Mark("order").Latched {
			t.Fatal("a reading of a replica latched the tag")
		}
		restored(s, 11)
		time.Sleep(2 * time.Minute)
		if !a.Mark("order").Latched {
			t.Errorf("mark %+v, two minutes after the row went back", a.Mark("order"))
		}
	})
}

// ownerIssues lets a own the tag and issue n IDs. It returns the end of what was issued, and the row from before.
func ownerIssues(t *testing.T, s *store, o *terms, a *segment.Allocator, n int) (end int64, backup segment.Row) {
	t.Helper()
	backup, err := s.Lookup(t.Context(), "order")
	if err != nil {
		t.Fatal(err)
	}
	o.own("a")
	got, err := a.NextN(t.Context(), "order", n)
	if err != nil {
		t.Fatal(err)
	}
	return got[len(got)-1].Hi, backup
}

// ownerIsGone lets a own the tag and issue, tells another node c of it, which took these calls, and ends a for good. It
// returns the end of what was issued, and the row from before.
func ownerIsGone(t *testing.T, s *store, o *terms, a *segment.Allocator) (c *segment.Allocator, end int64, backup segment.Row) {
	t.Helper()
	end, backup = ownerIssues(t, s, o, a, 95)
	c = node(t, s, nil, segment.Config{NodeID: "c", Terms: o.node("c")})
	c.Heard("order", end)
	o.end()
	if err := a.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	return c, end, backup
}

// TestRepairCountsWhatWasHeard: the owner of a tag is gone with its data directory, and the row goes back. A node that took
// calls to the owner knows what it has issued, and says so to a repair, whichever node carries it out.
func TestRepairCountsWhatWasHeard(t *testing.T) {
	for _, by := range []string{"b", "c"} {
		synctest.Test(t, func(t *testing.T) {
			s, o, a, b := pair(t, strictRow(10))
			c, end, backup := ownerIsGone(t, s, o, a)
			s.Put(backup)
			if _, err := map[string]*segment.Allocator{"b": b, "c": c}[by].Repair(t.Context(), "order", 0); err != nil {
				t.Fatal(err)
			}
			o.own("b")
			if id := nextOf(t, b); id < end {
				t.Errorf("repaired by %s: %d was issued twice, all below %d are in use", by, id, end)
			}
		})
	}
}

// TestRowThatIsGoneOfAnotherOwner: the same where the row is gone. The tag cannot be made again below.
func TestRowThatIsGoneOfAnotherOwner(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, o, a, _ := pair(t, strictRow(10))
		_, end, _ := ownerIsGone(t, s, o, a)
		s.Remove("order")
		time.Sleep(2 * time.Minute)
		again := segment.NewRow{Tag: "order", Start: end - 1, Step: 10}
		wantErr(t, s.Create(t.Context(), again), leaf.ErrConflict)
		again.Start = end
		if err := s.Create(t.Context(), again); err != nil {
			t.Error(err)
		}
	})
}

// TestRowBehindInAnOutageOfTheFence: with the policy degrade, nodes take ranges while the cluster fence does not answer, and
// the database loses those of one node. It finds that when it reads the rows, as without a cluster fence.
func TestRowBehindInAnOutageOfTheFence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, f := newStore(row(10)), sharing(memory.NewFence())
		nodes := map[string]*segment.Allocator{}
		for _, name := range []string{"a", "b"} {
			c := degraded(f, newAlarms())
			c.NodeID = name
			nodes[name] = node(t, s, nil, c)
			drain(t, nodes[name], "order", 5)
		}
		synctest.Wait()
		f.breakDown()
		drain(t, nodes["a"], "order", 300)
		synctest.Wait()
		restored(s, 101)
		drain(t, nodes["b"], "order", 30) // IDs that are in use: no node can know that yet
		time.Sleep(2 * time.Minute)
		for name, n := range nodes {
			if m := n.Mark("order"); !m.Latched {
				t.Errorf("node %s: %+v, two minutes after the row went back", name, m)
			}
		}
	})
}
