package segment_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/segment"
)

var errReadOnly = errors.New("UPDATE command denied to user 'leaf'")

// readOnly makes the store refuse writes and answer reads.
func (s *store) readOnly(except ...string) {
	s.set(func(s *store) {
		s.onReserve = func(_ context.Context, req segment.Request, do func() (segment.Reservation, error)) (segment.Reservation, error) {
			if slices.Contains(except, req.Tag) {
				return do()
			}
			return segment.Reservation{}, errReadOnly
		}
	})
}

// wantReady fails unless the node is ready or not, as wanted, with a reason that has the text.
func wantReady(t *testing.T, a *segment.Allocator, ready bool, reason string) {
	t.Helper()
	st := a.Status()
	all := strings.Join(st.Reasons, "; ")
	if st.Ready != ready || !strings.Contains(all, reason) || reason == "" && all != "" {
		t.Fatalf("ready %v because %q; want %v because of %q", st.Ready, all, ready, reason)
	}
}

// TestStoreThatTakesNoWrites: reads succeed, and still the node says that it is not ready,
// raises the alarm with the cause, and serves by itself once writes are possible.
func TestStoreThatTakesNoWrites(t *testing.T) {
	for _, rows := range [][]segment.Row{
		{row(10)},
		{row(10), {Tag: "cart", MaxID: 1, Step: 10}, {Tag: "user", MaxID: 1, Step: 10}},
	} {
		synctest.Test(t, func(t *testing.T) {
			s, al := newStore(rows...), newAlarms()
			s.readOnly()
			a := node(t, s, nil, segment.Config{Alarms: al, MaxWait: time.Second, SyncInterval: 5 * time.Second})
			for range 3 {
				_, err := a.Next(t.Context(), "order")
				wantErr(t, err, leaf.ErrNotReady)
			}
			time.Sleep(time.Minute) // readings of the rows succeed meanwhile
			al.want(t, "store default")
			if text := al.text("store", "default"); !strings.Contains(text, "UPDATE command denied") || strings.Contains(text, "does not answer") {
				t.Errorf("text %q", text)
			}
			wantReady(t, a, false, `no range can be loaded from store "default", and no tag has IDs in memory`)
			s.heal()
			time.Sleep(2 * time.Second)
			al.want(t)
			wantReady(t, a, true, "")
			waits := a.Status().Waits
			next(t, a, "order")
			if a.Status().Waits != waits {
				t.Error("the first call after the outage had to wait")
			}
		})
	}
}

// TestOneTagThatFails does not speak for the store: another one is tried, once.
func TestOneTagThatFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, al := newStore(row(10), segment.Row{Tag: "cart", MaxID: 1, Step: 10}), newAlarms()
		s.readOnly("cart")
		a := node(t, s, nil, segment.Config{Alarms: al, MaxWait: time.Second})
		for range 20 {
			_, err := a.Next(t.Context(), "order")
			wantErr(t, err, leaf.ErrNotReady)
		}
		time.Sleep(5 * time.Minute)
		al.want(t)
		wantReady(t, a, true, "")
		if got := s.maxID(t, "cart"); got != 11 {
			t.Errorf("max_id of the other tag = %d, want one range reserved", got)
		}
	})
}

// TestOneTagBesideThoseOfAnotherNode: the loads of one tag fail, and all others are in strict order and of another node. This
// node loads no range of those, so it does not find out by them whether the store takes writes.
func TestOneTagBesideThoseOfAnotherNode(t *testing.T) {
	for _, before := range []string{"never owned", "owned before"} {
		t.Run(before, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				cart := strictRow(10)
				cart.Tag = "cart"
				s, o, al := newStore(row(10), cart), &terms{}, newAlarms()
				a := node(t, s, nil, segment.Config{Alarms: al, MaxWait: time.Second, NodeID: "a", Terms: o.node("a")})
				synctest.Wait()
				if before == "owned before" {
					o.own("a")
					next(t, a, "cart")
				}
				o.own("b")
				s.readOnly()
				for range 20 {
					_, err := a.Next(t.Context(), "order")
					wantErr(t, err, leaf.ErrNotReady)
				}
				time.Sleep(time.Minute)
				al.want(t, "store default")
				wantReady(t, a, false, `no range can be loaded from store "default", and no tag has IDs in memory`)
				s.heal()
				time.Sleep(10 * time.Second)
				al.want(t)
				wantReady(t, a, true, "")
				next(t, a, "order")
			})
		})
	}
}

// TestLockedRowBesideTagsOfAnotherNode: a late load may be that of a locked row. No other tag can tell, so the store is not
// reported, and the node stays ready for calls that it takes to the owner.
func TestLockedRowBesideTagsOfAnotherNode(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cart := strictRow(10)
		cart.Tag = "cart"
		s, o, al := newStore(row(10), cart), &terms{}, newAlarms()
		o.own("b")
		a := node(t, s, nil, segment.Config{Alarms: al, MaxWait: time.Second, NodeID: "a", Terms: o.node("a")})
		s.set(func(s *store) {
			s.onReserve = func(ctx context.Context, _ segment.Request, _ func() (segment.Reservation, error)) (segment.Reservation, error) {
				<-ctx.Done()
				return segment.Reservation{}, ctx.Err()
			}
		})
		for range 60 {
			_, err := a.Next(t.Context(), "order")
			wantErr(t, err, leaf.ErrNotReady)
		}
		al.want(t)
		wantReady(t, a, true, "")
	})
}

// TestStoreAlarmEndsWithTheNeed: the tags that could not be loaded are deleted, so no load shows that the store
// takes writes again.
func TestStoreAlarmEndsWithTheNeed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tags := []string{"order", "cart"}
		s, al := newStore(row(10), segment.Row{Tag: "cart", MaxID: 1, Step: 10}), newAlarms()
		a := node(t, s, nil, segment.Config{Alarms: al, MaxWait: time.Second})
		s.readOnly()
		for _, tag := range tags {
			_, err := a.Next(t.Context(), tag)
			wantErr(t, err, leaf.ErrNotReady)
		}
		al.want(t, "store default")
		s.heal()
		for _, tag := range tags {
			if err := errors.Join(s.Delete(t.Context(), tag), a.Refresh(t.Context(), tag)); err != nil {
				t.Error(err)
			}
		}
		time.Sleep(5 * time.Minute)
		al.want(t)
		wantReady(t, a, true, "")
	})
}

// TestAlarmsEndWithTheOutage although nobody asks any more: load balancers have sent the
// callers elsewhere.
func TestAlarmsEndWithTheOutage(t *testing.T) {
	for _, c := range []struct {
		name string
		fail func(s *store)
	}{
		{"store down", (*store).breakDown},
		{"no writes", func(s *store) { s.readOnly() }},
		{"loads hang", func(s *store) {
			s.set(func(s *store) {
				s.onReserve = func(ctx context.Context, _ segment.Request, _ func() (segment.Reservation, error)) (segment.Reservation, error) {
					<-ctx.Done()
					return segment.Reservation{}, ctx.Err()
				}
			})
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, al := newStore(row(10), segment.Row{Tag: "cart", MaxID: 1, Step: 10}), newAlarms()
				a := node(t, s, nil, segment.Config{Alarms: al, MaxWait: time.Second, FixedStep: true})
				for _, tag := range []string{"order", "cart"} {
					drain(t, a, tag, 1)
				}
				synctest.Wait()
				c.fail(s)
				for _, tag := range []string{"order", "cart"} {
					exhaust(t, a, tag)
				}
				if al.text("exhausted", "order") == "" || al.text("exhausted", "cart") == "" {
					t.Fatalf("alarms %q", al.history())
				}
				time.Sleep(time.Minute)
				s.heal()
				time.Sleep(10 * time.Second)
				al.want(t)
				wantReady(t, a, true, "")
			})
		})
	}
}

func exhaust(t *testing.T, a *segment.Allocator, tag string) {
	t.Helper()
	for {
		if _, err := a.Next(t.Context(), tag); err != nil {
			wantErr(t, err, leaf.ErrExhausted)
			return
		}
	}
}

// TestReadyInAnOutage lasts as long as a tag has IDs in memory.
func TestReadyInAnOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStore(row(10), segment.Row{Tag: "cart", MaxID: 1, Step: 10})
		a := node(t, s, nil, segment.Config{MaxWait: time.Second, FixedStep: true})
		drain(t, a, "order", 1)
		drain(t, a, "cart", 1)
		synctest.Wait()
		s.breakDown()
		exhaust(t, a, "order")
		time.Sleep(2 * time.Minute)
		wantReady(t, a, true, "cannot be read") // the loads of one tag alone fail
		exhaust(t, a, "cart")
		time.Sleep(2 * time.Second)
		wantReady(t, a, false, "no tag has IDs in memory")
		s.heal()
		time.Sleep(6 * time.Second)
		wantReady(t, a, true, "")
	})
}

// TestUnknownTagsAreNoFailures of loads: a client that asks for what is not there is no
// trouble of the store.
func TestUnknownTagsAreNoFailures(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := node(t, newStore(row(10)), nil, segment.Config{NegativeTTL: time.Millisecond})
		for range 7 {
			_, err := a.Next(t.Context(), "nope")
			wantErr(t, err, leaf.ErrUnknownTag)
			time.Sleep(time.Second)
		}
		if st := a.Status(); st.Failures != 0 || st.Unknown != 7 {
			t.Errorf("%d failures and %d unknown, want 0 and 7", st.Failures, st.Unknown)
		}
	})
}

// TestDeadlinesDoNotHideADeadStore: a connection that times out says nothing good
// about the store.
func TestDeadlinesDoNotHideADeadStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStore()
		for i := range 1000 {
			s.Put(segment.Row{Tag: fmt.Sprint("tag-", i), MaxID: 1, Step: 1})
		}
		a := node(t, s, nil, segment.Config{})
		s.set(func(s *store) {
			s.onReserve = func(context.Context, segment.Request, func() (segment.Reservation, error)) (segment.Reservation, error) {
				if s.count()%3 == 0 {
					return segment.Reservation{}, context.DeadlineExceeded
				}
				return segment.Reservation{}, errDown
			}
		})
		for i := range 1000 {
			go func() { _, _ = a.Next(t.Context(), fmt.Sprint("tag-", i)) }()
		}
		time.Sleep(30 * time.Second)
		if n := s.count(); n > 300 {
			t.Errorf("%d attempts in 30 s on a dead store", n)
		}
	})
}
