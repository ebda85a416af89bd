package segment_test

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/segment"
)

// suspendable is a Runtime whose process can be suspended: its clock jumps, and no deadline
// passes, because the monotonic clock stands still meanwhile.
type suspendable struct {
	leaf.Runtime
	away atomic.Int64
}

func (r *suspendable) Now() time.Time {
	return r.Runtime.Now().Round(0).Add(time.Duration(r.away.Load()))
}

// TestRuleThatChangesDuringALoad: a process is suspended for ten minutes when it is about to
// reserve a range, and another rule is recorded meanwhile. The range that it reserves when it
// runs again is not served. If the rule is the same, the node soon serves.
func TestRuleThatChangesDuringALoad(t *testing.T) {
	for name, changed := range map[string]bool{"another rule": true, "the same rule": false} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, rt := newStore(row(10)), &suspendable{Runtime: leaf.SystemRuntime()}
				a := node(t, s, nil, segment.Config{MaxWait: time.Second, FixedStep: true, Runtime: rt})
				t.Cleanup(func() { rt.away.Store(0) }) // the deadline of Close is by the other clock
				drain(t, a, "order", 10)
				synctest.Wait()
				end := s.maxID(t, "order")
				suspend := sync.OnceFunc(func() {
					rt.away.Add(int64(10 * time.Minute))
					if changed {
						s.set(func(s *store) { s.onBind = func(context.Context, func() error) error { return segment.ErrRule } })
					}
				})
				s.set(func(s *store) {
					s.onReserve = func(_ context.Context, _ segment.Request, do func() (segment.Reservation, error)) (segment.Reservation, error) {
						suspend()
						return do()
					}
				})
				served := 0
				for range 100 {
					if id, err := a.Next(t.Context(), "order"); err == nil && id >= end {
						served++
					}
					time.Sleep(10 * time.Millisecond)
				}
				if (served == 0) != changed {
					t.Errorf("%d IDs are of ranges that were reserved after the suspension", served)
				}
			})
		})
	}
}

// TestNodeIsOnTheListBeforeItLoads: a node could not reach its database for ten minutes. When the
// database is back, the node takes no range before it is on the list of nodes: it may have
// compared the rule a moment before a command takes it away, which then finds no node on the list.
func TestNodeIsOnTheListBeforeItLoads(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &board{store: newStore(row(10))}
		a := node(t, b, nil, segment.Config{MaxWait: time.Second, FixedStep: true})
		drain(t, a, "order", 20)
		synctest.Wait()
		down := func() error { return errDown }
		b.change(func(b *board) { b.onEnter, b.onNotices = down, down })
		b.breakDown()
		time.Sleep(10 * time.Minute)
		end, entered := b.maxID(t, "order"), false
		b.heal()
		b.change(func(b *board) {
			b.onNotices = nil
			b.onEnter = func() error { entered = true; return nil } // the hooks are called one at a time
		})
		back := time.Now()
		for time.Since(back) < 2*time.Second {
			id, err := a.Next(t.Context(), "order")
			if err != nil || id < end {
				time.Sleep(time.Millisecond)
				continue
			}
			synctest.Wait()
			if !entered {
				t.Fatalf("%d was issued by a node that is not on the list", id)
			}
			return
		}
		t.Error("the node does not serve within two seconds")
	})
}

// TestRuleThatChangesInOneDatabase: the tags of database b are moved to a, and the new rule has
// only a, so b keeps the old one. A node that was suspended meanwhile takes no range of b. One
// that reads of the new rule in a issues nothing more of b, either.
func TestRuleThatChangesInOneDatabase(t *testing.T) {
	for name, suspended := range map[string]time.Duration{"a suspended node": 10 * time.Minute, "a node that runs": 0} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				a, b, rt := newStore(), newStore(row(10)), &suspendable{Runtime: leaf.SystemRuntime()}
				router, err := segment.NewRouter([]segment.NamedStore{{Name: "a", Store: a}, {Name: "b", Store: b}}, []segment.TagRule{{Pattern: "order", Store: "b"}})
				if err != nil {
					t.Fatal(err)
				}
				n := newRouted(t, router, newDisk(), segment.Config{MaxWait: time.Second, FixedStep: true, SyncInterval: time.Minute, Runtime: rt})
				t.Cleanup(func() { rt.away.Store(0) }) // the deadline of Close is by the other clock
				if err := n.Start(t.Context()); err != nil {
					t.Fatal(err)
				}
				drain(t, n, "order", 10)
				synctest.Wait()
				a.set(func(s *store) { s.onBind = func(context.Context, func() error) error { return segment.ErrRule } })
				if rt.away.Add(int64(suspended)); suspended == 0 {
					time.Sleep(2 * time.Minute)
				}
				end := b.maxID(t, "order")
				for range 100 {
					if id, err := n.Next(t.Context(), "order"); err == nil && (id >= end || suspended == 0) {
						t.Fatalf("%d was issued by the old rule", id)
					}
					time.Sleep(10 * time.Millisecond)
				}
				if st := n.Status(); st.Ready {
					t.Errorf("the node is ready: %v", st.Reasons)
				}
				a.heal() // the command has put the old rule back
				time.Sleep(2 * time.Minute)
				drain(t, n, "order", 10)
			})
		})
	}
}
