package segment_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/number"
	"github.com/leaf-idgen/leaf/segment"
)

// TestClockAheadOfAPeriod: a node whose clock is a day ahead takes no range of today again and again: it would drop each, and
// the numbers of the day would be used up for the nodes whose clocks are right. It blames its clock, not the database, and
// loads other tags as before.
func TestClockAheadOfAPeriod(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		bill, plain := daily(), row(10)
		bill.Tag, plain.Tag = "bill", "plain"
		s, l, clock := newStore(daily()), newAlarms(), shiftedBy(0)
		s.Put(bill)
		s.Put(plain)
		a := node(t, s, nil, segment.Config{Runtime: clock, Alarms: l, MaxWait: time.Second, SyncInterval: time.Minute})
		nextOf(t, a)
		synctest.Wait()
		before := s.maxID(t, "order")
		clock.by.Store(int64(25 * time.Hour))
		for range 300 {
			for _, tag := range []string{"order", "bill"} {
				if id, err := a.Next(t.Context(), tag); !errors.Is(err, leaf.ErrNotReady) {
					t.Fatalf("tag %s: %d, %v; want ErrNotReady", tag, id, err)
				}
			}
			if _, err := a.Next(t.Context(), "plain"); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Second)
		}
		if taken := s.maxID(t, "order") - before; taken > 10 {
			t.Errorf("the node has taken %d numbers of today that it may not issue, want at most one range of 10", taken)
		}
		l.want(t, "clock periods")
		if !a.ClockMisfits() {
			t.Error("the clock does not fit the period, and ClockMisfits is false")
		}
		clock.by.Store(0)
		time.Sleep(2 * time.Minute)
		l.want(t)
		if a.ClockMisfits() {
			t.Error("the clock is right again, and ClockMisfits is true")
		}
		nextOf(t, a)
	})
}

// TestClockSlightlyAhead: a node that wanted to begin a period too early issues its numbers once the period has begun.
func TestClockSlightlyAhead(t *testing.T) {
	for name, begin := range map[string]func(t *testing.T, s *store, clock *shifted){
		"by another node": func(t *testing.T, s *store, _ *shifted) {
			t.Helper()
			time.Sleep(11 * time.Minute)
			wantNumber(t, nextOf(t, node(t, s, nil, segment.Config{NodeID: "right"})), "2000-01-02", 1)
			time.Sleep(2 * time.Minute) // the node reads the row
		},
		"by the node itself": func(_ *testing.T, _ *store, clock *shifted) {
			clock.by.Store(0)
			time.Sleep(11 * time.Minute)
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				lateInTheDay()
				s, l, clock := newStore(daily()), newAlarms(), shiftedBy(12*time.Minute)
				a := node(t, s, nil, segment.Config{Runtime: clock, Alarms: l, MaxWait: time.Second})
				if id, err := a.Next(t.Context(), "order"); !errors.Is(err, leaf.ErrNotReady) {
					t.Fatalf("10 minutes before midnight: %d, %v; want ErrNotReady", id, err)
				}
				l.want(t, "clock periods")
				begin(t, s, clock)
				if id := nextOf(t, a); id>>number.PeriodBits != 10958 {
					t.Errorf("issued %d, want a number of the new day", id)
				}
				l.want(t)
				clock.by.Store(0) // for the end of the test
			})
		})
	}
}

// TestClockBehindAPeriod: the node says that its clock is behind, until it is right or the tag is gone.
func TestClockBehindAPeriod(t *testing.T) {
	for name, mend := range map[string]func(t *testing.T, s *store, clock *shifted){
		"set right": func(_ *testing.T, _ *store, clock *shifted) { clock.by.Store(0) },
		"tag is gone": func(t *testing.T, s *store, _ *shifted) {
			t.Helper()
			if err := s.Delete(t.Context(), "order"); err != nil {
				t.Fatal(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, l, clock := newStore(daily()), newAlarms(), shiftedBy(-2*time.Hour)
				nextOf(t, node(t, s, nil, segment.Config{NodeID: "right"}))
				synctest.Wait()
				late := node(t, s, nil, segment.Config{NodeID: "late", Runtime: clock, Alarms: l, SyncInterval: time.Minute})
				if id, err := late.Next(t.Context(), "order"); !errors.Is(err, leaf.ErrNotReady) {
					t.Fatalf("issued %d, %v; want ErrNotReady", id, err)
				}
				l.want(t, "clock periods")
				if text := l.text("clock", "periods"); !strings.Contains(text, `"order"`) || !late.ClockMisfits() {
					t.Errorf("the alarm says %q", text)
				}
				mend(t, s, clock)
				time.Sleep(2 * time.Minute)
				l.want(t)
				if late.ClockMisfits() {
					t.Error("the alarm has ended, and ClockMisfits is true")
				}
			})
		})
	}
}

// TestClockAlarmFollowsItsCause: a clock that was ahead is set back too far. The alarm, which is still there, says so, and names
// the tag that it named before.
func TestClockAlarmFollowsItsCause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		bill := daily()
		bill.Tag = "bill"
		s, l, clock := newStore(daily()), newAlarms(), shiftedBy(25*time.Hour)
		s.Put(bill)
		right := node(t, s, nil, segment.Config{NodeID: "right"})
		nextOf(t, right)
		if _, err := right.Next(t.Context(), "bill"); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		wrong := node(t, s, nil, segment.Config{NodeID: "wrong", Runtime: clock, Alarms: l, SyncInterval: time.Minute, MaxWait: time.Second})
		misfits := func(tag string) {
			t.Helper()
			if id, err := wrong.Next(t.Context(), tag); !errors.Is(err, leaf.ErrNotReady) {
				t.Fatalf("tag %s: %d, %v; want ErrNotReady", tag, id, err)
			}
		}
		misfits("order")
		misfits("bill")
		if text := l.text("clock", "periods"); !strings.Contains(text, `of tag "order"`) || !strings.Contains(text, "ahead of the database's") {
			t.Fatalf("a clock that is ahead: %q", text)
		}
		clock.by.Store(int64(-2 * time.Hour))
		misfits("bill")
		misfits("order")
		if text := l.text("clock", "periods"); !strings.Contains(text, `of tag "order"`) || !strings.Contains(text, "begins later than in") {
			t.Errorf("a clock that is behind: %q", text)
		}
		clock.by.Store(0)
		time.Sleep(2 * time.Minute)
		l.want(t)
	})
}

// timeless is a store whose rows do not say when they were written, as those of etcd.
type timeless struct{ *store }

func (s timeless) Lookup(ctx context.Context, tag string) (segment.Row, error) {
	row, err := s.store.Lookup(ctx, tag)
	row.UpdateTime = time.Time{}
	return row, err
}

// TestRowInALaterPeriodAsTheAlarmSays: a node whose clock was ahead has issued numbers of tomorrow, and is thrown away with its
// data directory. The operator does what the alarm of the other node says, with the row or with another tag, and no number repeats.
func TestRowInALaterPeriodAsTheAlarmSays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(24*time.Hour - 70*time.Minute)
		s, d, l, ids := timeless{newStore(daily())}, newDisk(), newAlarms(), newLedger()
		cfg := segment.Config{NodeID: "right", Alarms: l, SyncInterval: time.Minute, MaxWait: time.Second}
		right := node(t, s, d, cfg)
		ids.add(t, "right", drain(t, right, "order", 3)...)
		clock := shiftedBy(80 * time.Minute)
		wrong := node(t, s, nil, segment.Config{NodeID: "wrong", Runtime: clock})
		ids.add(t, "wrong", drain(t, wrong, "order", 3)...)
		clock.by.Store(0)
		closeNode(t, wrong)
		time.Sleep(2 * time.Minute)
		if id, err := right.Next(t.Context(), "order"); !errors.Is(err, leaf.ErrNotReady) {
			t.Errorf("issued %d, %v; want ErrNotReady", id, err)
		}
		l.want(t, "clock periods")
		if do := l.do("clock", "periods"); strings.Contains(do, "set max_id with SQL") {
			closeNode(t, right)
			low := daily()
			low.MaxID = 10957<<number.PeriodBits + 4 + 3*1_000_000
			s.Put(low)
			right = node(t, s, d, cfg)
		} else {
			if !strings.Contains(do, "create another tag") || !strings.Contains(do, "if it has a format, give that other letters") {
				t.Errorf("an operator who gives the other tag this format writes the texts of today again: %q", do)
			}
			column := ids // that programs keep the IDs in
			if strings.Contains(do, "give its IDs a column of their own") {
				column = newLedger()
			}
			other := daily()
			other.Tag = "other"
			s.Put(other)
			column.add(t, "right", drain(t, right, "other", 3)...)
		}
		time.Sleep(70 * time.Minute)
		ids.add(t, "right", drain(t, right, "order", 20)...)
		l.want(t)
	})
}
