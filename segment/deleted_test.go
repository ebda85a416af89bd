package segment_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/segment"
	"github.com/leaf-idgen/leaf/segment/fence"
)

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

// TestLateUnknownOfADeletedTag: the reply "no such row" to a deleted tag's load arrives after
// its successor has reserved. It must not end the successor.
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
		before, err := old.Next(t.Context()) // the old handle shares the successor's chunk
		if err != nil {
			t.Fatal(err)
		}
		close(release)
		synctest.Wait()
		if after := next(t, a, "order"); after != before+1 {
			t.Errorf("%d follows %d: the successor's chunk was shut", after, before)
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

// A batch waits for more than is in stock, and the row is gone: the text says what the protocols' code says.
func TestTextOfABatchOfADeletedTag(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStore(row(10))
		a := node(t, s, nil, segment.Config{MaxWait: time.Second, FixedStep: true, SyncInterval: time.Hour})
		next(t, a, "order")
		synctest.Wait()
		s.Remove("order")
		_, err := a.NextN(t.Context(), "order", 50)
		if !errors.Is(err, leaf.ErrUnknownTag) || !strings.Contains(err.Error(), leaf.ErrUnknownTag.Error()) {
			t.Errorf("%v, of class %s", err, leaf.ClassOf(err).Code)
		}
	})
}
