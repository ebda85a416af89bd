package segment_test

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/segment"
	"github.com/leaf-idgen/leaf/segment/fence"
)

// The sequences of events in this file were found by a second reader of the engine;
// each repeated an ID or wedged a tag before it was mended.

// stuckOnce makes the first Reserve from now on hold its reply until release is
// closed. fail replaces the reply if it is not nil.
func stuckOnce(s *store, fail error) (stuck, release chan struct{}) {
	stuck, release = make(chan struct{}), make(chan struct{})
	var once sync.Once
	s.set(func(s *store) {
		s.onReserve = func(_ context.Context, _ segment.Request, do func() (segment.Reservation, error)) (segment.Reservation, error) {
			first := false
			once.Do(func() { first = true })
			if !first {
				return do()
			}
			r, err := segment.Reservation{}, fail
			if fail == nil {
				r, err = do()
			}
			close(stuck)
			<-release
			return r, err
		}
	})
	return stuck, release
}

// deleteAndCreate replaces the row under a node that is told both times.
func deleteAndCreate(t *testing.T, a *segment.Allocator, s *store, maxID int64) {
	t.Helper()
	if err := s.Delete(t.Context(), "order"); err != nil {
		t.Fatal(err)
	}
	if err := a.Refresh(t.Context(), "order"); err != nil {
		t.Fatal(err)
	}
	synctest.Wait() // the board is told where the old row ended
	s.Put(segment.Row{Tag: "order", MaxID: maxID, Step: 100})
	if err := a.Refresh(t.Context(), "order"); err != nil {
		t.Fatal(err)
	}
}

// TestLateLoadOfADeletedTag: the reply of a deleted tag's load arrives after its
// successor has reserved. It must not take the fence back.
func TestLateLoadOfADeletedTag(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, d, ids := newStore(row(100)), newDisk(), newLedger()
		a := node(t, s, d, segment.Config{FixedStep: true, SyncInterval: time.Hour, LoadTimeout: time.Minute})
		ids.add(t, "first", next(t, a, "order"))
		stuck, release := stuckOnce(s, nil)
		ids.add(t, "first", drain(t, a, "order", 10)...)
		<-stuck // [101, 201) is reserved, nobody knows yet
		deleteAndCreate(t, a, s, 1001)
		ids.add(t, "second", drain(t, a, "order", 5)...)
		close(release)
		synctest.Wait()
		if m := a.Mark("order"); m.High != 1101 || m.Latched {
			t.Fatalf("mark %+v after the late reply, want 1101", m)
		}
		// The node crashes, and the store comes back from an older dump.
		b := node(t, newStore(segment.Row{Tag: "order", MaxID: 901, Step: 100}), d.copy(), segment.Config{FixedStep: true})
		_, err := b.Next(t.Context(), "order")
		wantErr(t, err, leaf.ErrRegress)
	})
}

// TestLateUnknownOfADeletedTag: the same with a reply "no such row". It must not end
// the successor.
func TestLateUnknownOfADeletedTag(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStore(row(100))
		a := node(t, s, nil, segment.Config{FixedStep: true, SyncInterval: time.Hour, LoadTimeout: time.Minute})
		next(t, a, "order")
		old := a.Tag("order")
		stuck, release := stuckOnce(s, leaf.ErrUnknownTag)
		drain(t, a, "order", 10)
		<-stuck
		deleteAndCreate(t, a, s, 1001)
		before, err := old.Next(t.Context()) // the old handle shares the successor's piece
		if err != nil {
			t.Fatal(err)
		}
		close(release)
		synctest.Wait()
		if after := next(t, a, "order"); after != before+1 {
			t.Errorf("%d follows %d: the successor's piece was shut", after, before)
		}
	})
}

// TestDetachedTagStaysDetached: a slow look-up ends after the tag was created,
// deleted and created again. The tag that asked must not come back to life.
func TestDetachedTagStaysDetached(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, d, ids := newStore(), newDisk(), newLedger()
		stuck, release := make(chan struct{}), make(chan struct{})
		lookups := 0
		s.set(func(s *store) {
			s.onLookup = func(context.Context, string) error {
				if lookups++; lookups == 1 {
					close(stuck)
					<-release
				}
				return nil
			}
		})
		a := node(t, s, d, segment.Config{SyncInterval: time.Hour, LoadTimeout: time.Minute})
		got := make(chan error, 1)
		go func() { _, err := a.Next(t.Context(), "order"); got <- err }()
		<-stuck
		s.Put(row(100))
		if err := a.Refresh(t.Context(), "order"); err != nil {
			t.Fatal(err)
		}
		if err := s.Delete(t.Context(), "order"); err != nil {
			t.Fatal(err)
		}
		if err := a.Refresh(t.Context(), "order"); err != nil { // detaches the tag that asks
			t.Fatal(err)
		}
		wantErr(t, <-got, leaf.ErrUnknownTag)
		s.Put(row(100))
		close(release)
		time.Sleep(time.Second) // until the "no" is forgotten
		ids.add(t, "others", drain(t, a, "order", 300)...)
		closeNode(t, a)
		b := node(t, s, d, segment.Config{})
		ids.add(t, "restart", drain(t, b, "order", 300)...)
	})
}

// slowRaise is a store whose first Raise waits.
type slowRaise struct {
	*store
	raises         atomic.Int32
	stuck, release chan struct{}
}

func (r *slowRaise) Raise(ctx context.Context, tag string, above int64) (int64, error) {
	if r.raises.Add(1) == 1 {
		close(r.stuck)
		<-r.release
	}
	return r.store.Raise(ctx, tag, above)
}

// TestTwoRepairs: the slower of two repairs ends after the tag has issued again. It
// must not take the fence back to where it was when it began.
func TestTwoRepairs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &slowRaise{store: newStore(row(100)), stuck: make(chan struct{}), release: make(chan struct{})}
		a := node(t, s, nil, segment.Config{FixedStep: true, LoadTimeout: time.Minute})
		next(t, a, "order")
		s.Put(row(100))
		useUntil(t, a, newLedger(), leaf.ErrRegress)
		first := make(chan error, 1)
		go func() { _, err := a.Repair(t.Context(), "order", 1000); first <- err }()
		<-s.stuck
		if _, err := a.Repair(t.Context(), "order", 1000); err != nil {
			t.Fatal(err)
		}
		if id := next(t, a, "order"); id != 1001 {
			t.Fatalf("ID = %d, want 1001", id)
		}
		close(s.release)
		wantErr(t, <-first, nil)
		if m := a.Mark("order"); m.High != 1101 || m.Latched {
			t.Errorf("mark %+v, want 1101", m)
		}
	})
}

// TestWaitingRoomEmpties: callers that leave while their look-up hangs leave nothing
// behind, however many names they asked for.
func TestWaitingRoomEmpties(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStore()
		s.set(func(s *store) {
			s.onLookup = func(ctx context.Context, _ string) error { <-ctx.Done(); return ctx.Err() }
		})
		a := node(t, s, nil, segment.Config{SyncInterval: time.Hour, MaxLoads: 1000, MaxWait: 100 * time.Millisecond, LoadTimeout: time.Second})
		for round := range 6 {
			for i := range 900 {
				go func() { _, _ = a.Next(t.Context(), fmt.Sprint(round, " ", i)) }()
			}
			time.Sleep(3 * time.Second)
		}
		s.heal()
		create(t, s, "fresh", 1)
		next(t, a, "fresh")
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

// TestHungCallsAtClose: a load of one tag and the reading of all tags hang. The other
// tags still give back, and ctx bounds the whole.
func TestHungCallsAtClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStore(row(100), segment.Row{Tag: "other", MaxID: 1, Step: 1000})
		a := node(t, s, nil, segment.Config{LoadTimeout: time.Minute, SyncInterval: time.Second})
		next(t, a, "other")
		hang := func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }
		s.set(func(s *store) {
			s.onRows = hang
			s.onReserve = func(ctx context.Context, _ segment.Request, _ func() (segment.Reservation, error)) (segment.Reservation, error) {
				return segment.Reservation{}, hang(ctx)
			}
		})
		go func() { _, _ = a.Next(t.Context(), "order") }()
		time.Sleep(2 * time.Second)
		ctx, cancel := context.WithTimeout(t.Context(), 4*time.Second)
		defer cancel()
		start := time.Now()
		wantErr(t, a.Close(ctx), context.DeadlineExceeded)
		if d := time.Since(start); d > 4*time.Second {
			t.Errorf("Close took %v, its context allows 4 s", d)
		}
		if got := s.maxID(t, "other"); got != 2 {
			t.Errorf("max_id of the other tag = %d after the stop, want 2", got)
		}
		<-ctx.Done() // the abandoned load ends with the bubble
	})
}

// TestHungSyncDoesNotHoldUpClose: nobody needs the rows any more.
func TestHungSyncDoesNotHoldUpClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStore(row(100))
		a := node(t, s, nil, segment.Config{SyncInterval: time.Second})
		next(t, a, "order")
		s.set(func(s *store) {
			s.onRows = func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }
		})
		time.Sleep(2 * time.Second)
		start := time.Now()
		closeNode(t, a)
		if d := time.Since(start); d > 0 {
			t.Errorf("Close took %v", d)
		}
		if got := s.maxID(t, "order"); got != 2 {
			t.Errorf("max_id = %d after the stop, want 2", got)
		}
	})
}

// TestHungGiveBackIsBounded: so does a compare-and-set that hangs.
func TestHungGiveBackIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStore(row(100))
		a := node(t, s, nil, segment.Config{LoadTimeout: time.Minute})
		next(t, a, "order")
		s.set(func(s *store) {
			s.onGiveBack = func(ctx context.Context, _ string, _ func() error) error { <-ctx.Done(); return ctx.Err() }
		})
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		defer cancel()
		start := time.Now()
		_ = a.Close(ctx)
		if d := time.Since(start); d > 2*time.Second {
			t.Errorf("Close took %v, its context allows 2 s", d)
		}
		time.Sleep(time.Second) // the call ends in its grace
	})
}

// TestRecentFades: preloading a tag does not count as use.
func TestRecentFades(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, d := newStore(row(100)), newDisk()
		a := node(t, s, d, segment.Config{})
		next(t, a, "order")
		for range 3 {
			time.Sleep(20 * time.Hour)
			closeNode(t, a)
			a = node(t, s, d, segment.Config{})
			synctest.Wait()
		}
		before := s.count()
		closeNode(t, a)
		_ = node(t, s, d, segment.Config{})
		synctest.Wait()
		if n := s.count() - before; n != 0 {
			t.Errorf("%d ranges loaded for a tag that was last used 60 h ago", n)
		}
	})
}

// TestRecentSurvivesAStoreThatIsDown: a run that never reached its store keeps the
// list of the run before.
func TestRecentSurvivesAStoreThatIsDown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, d := newStore(row(100)), newDisk()
		a := node(t, s, d, segment.Config{})
		next(t, a, "order")
		closeNode(t, a)
		s.breakDown()
		a = node(t, s, d, segment.Config{})
		time.Sleep(time.Minute)
		closeNode(t, a)
		s.heal()
		before := s.count()
		_ = node(t, s, d, segment.Config{})
		synctest.Wait()
		if n := s.count() - before; n != 1 {
			t.Errorf("%d ranges loaded at start, want the one of the recent tag", n)
		}
	})
}

// TestRepairOfADeletedTag: the alarm of a latched tag whose row is gone can be ended, and
// what the operator said holds for a row of that name that is created later.
func TestRepairOfADeletedTag(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, d, l := newStore(row(100)), newDisk(), newAlarms()
		a := node(t, s, d, segment.Config{FixedStep: true, Alarms: l})
		next(t, a, "order")
		s.Put(row(100))
		useUntil(t, a, newLedger(), leaf.ErrRegress)
		if err := s.Delete(t.Context(), "order"); err != nil {
			t.Fatal(err)
		}
		l.want(t, leaf.AlarmRegress+" order")
		_, err := a.Repair(t.Context(), "order", 5000)
		wantErr(t, err, leaf.ErrUnknownTag)
		l.want(t)
		closeNode(t, a)

		s.Put(segment.Row{Tag: "order", MaxID: 4000, Step: 100})
		a = node(t, s, d, segment.Config{FixedStep: true, Alarms: l})
		_, err = a.Next(t.Context(), "order")
		wantErr(t, err, leaf.ErrRegress)
		if _, err := a.Repair(t.Context(), "order", 5000); err != nil {
			t.Fatal(err)
		}
		if id := next(t, a, "order"); id < 5001 {
			t.Errorf("ID = %d, want one above 5000", id)
		}

		// With a row, too, the mark is where the row is: no node gives numbers below back.
		s.Put(segment.Row{Tag: "order", MaxID: 4000, Step: 100})
		useUntil(t, a, newLedger(), leaf.ErrRegress)
		if _, err := a.Repair(t.Context(), "order", 9000); err != nil {
			t.Fatal(err)
		}
		if m := a.Mark("order"); m.High != 9001 {
			t.Errorf("mark %+v after the repair, want 9001", m)
		}

		// A tag that is not latched has nothing to be released from.
		_, err = a.Repair(t.Context(), "nobody", 5000)
		wantErr(t, err, leaf.ErrUnknownTag)
		if m := a.Mark("nobody"); m != (fence.Mark{}) {
			t.Errorf("mark of an unknown tag: %+v", m)
		}
	})
}
