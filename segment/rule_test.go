package segment_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leaf-idgen/leaf/segment"
)

// foreign makes a store belong to another rule, for loads alone or also for binds.
func foreign(s *store, binds bool) {
	s.set(func(s *store) {
		s.onReserve = func(context.Context, segment.Request, func() (segment.Reservation, error)) (segment.Reservation, error) {
			return segment.Reservation{}, segment.ErrRule
		}
		if binds {
			s.onBind = func(context.Context, func() error) error { return segment.ErrRule }
		}
	})
}

// TestLoadFindsAnotherRule: the rule changes while a node runs, and its next load is the first to
// find that. The node issues nothing more, not even from memory, and loads nothing until it has
// compared the rule again. If the old rule is back by then, it serves on.
func TestLoadFindsAnotherRule(t *testing.T) {
	for name, stays := range map[string]bool{"another rule": true, "the old rule is back": false} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, al := newStore(row(10), segment.Row{Tag: "other", MaxID: 1, Step: 10}), newAlarms()
				a := node(t, s, nil, segment.Config{MaxWait: time.Second, FixedStep: true, SyncInterval: time.Minute, Alarms: al})
				next(t, a, "other")
				drain(t, a, "order", 10)
				synctest.Wait()
				foreign(s, stays)
				for range 100 { // what is in memory, and then a load
					_, _ = a.Next(t.Context(), "order")
				}
				synctest.Wait() // until the load that found it has dropped what is in memory
				al.want(t, "rule default")
				if id, err := a.Next(t.Context(), "other"); err == nil {
					t.Errorf("%d was issued from memory", id)
				}
				if stays {
					reserved := s.count()
					time.Sleep(10 * time.Minute)
					if n := s.count(); n != reserved {
						t.Errorf("%d loads", n-reserved)
					}
					wantReady(t, a, false, "belongs to another tag rule")
					return
				}
				s.heal()
				time.Sleep(2 * time.Minute)
				al.want(t)
				drain(t, a, "order", 10)
				drain(t, a, "other", 10)
			})
		})
	}
}

// TestRuleThatChangesInOneDatabase: the tags of database b are moved to a, and the command was told
// that b is lost. A node that still reaches b issues nothing more of it once it has read of the new
// rule in a.
func TestRuleThatChangesInOneDatabase(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := newStore(), newStore(row(10))
		router, err := segment.NewRouter([]segment.NamedStore{{Name: "a", Store: a}, {Name: "b", Store: b}}, []segment.TagRule{{Pattern: "order", Store: "b"}})
		if err != nil {
			t.Fatal(err)
		}
		n := newRouted(t, router, newDisk(), segment.Config{MaxWait: time.Second, FixedStep: true, SyncInterval: time.Minute})
		if err := n.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		drain(t, n, "order", 10)
		synctest.Wait()
		foreign(a, true)
		time.Sleep(2 * time.Minute)
		for range 100 {
			if id, err := n.Next(t.Context(), "order"); err == nil {
				t.Fatalf("%d was issued by the old rule", id)
			}
			time.Sleep(10 * time.Millisecond)
		}
		if st := n.Status(); st.Ready {
			t.Errorf("the node is ready: %v", st.Reasons)
		}
		a.heal() // the old rule is back
		time.Sleep(2 * time.Minute)
		drain(t, n, "order", 10)
	})
}

// TestStartByAnotherRule: Start fails, and the node is not on the list of nodes.
func TestStartByAnotherRule(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &board{store: newStore(row(10))}
		b.set(func(s *store) { s.onBind = func(context.Context, func() error) error { return segment.ErrRule } })
		a := newNode(t, b, nil, segment.Config{MaxWait: time.Second})
		if err := a.Start(t.Context()); !errors.Is(err, segment.ErrRule) {
			t.Errorf("Start = %v, want ErrRule", err)
		}
		if id, err := a.Next(t.Context(), "order"); err == nil {
			t.Errorf("Next = %d", id)
		}
		if nodes, err := b.Nodes(t.Context()); err != nil || len(nodes) > 0 {
			t.Errorf("the list has %v, %v", nodes, err)
		}
	})
}
