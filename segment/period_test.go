package segment_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/number"
	"github.com/leaf-idgen/leaf/segment"
)

// daily is a row whose numbers begin anew each day.
func daily() segment.Row {
	return withOptions(10, segment.Options{Period: number.Day, FixedStep: true})
}

// wantNumber reports whether an ID is the number n of the day, of the synctest epoch of 2000-01-01 or later.
func wantNumber(t *testing.T, id int64, day string, n int64) {
	t.Helper()
	at := time.Unix(id>>number.PeriodBits*86400, 0).UTC().Format(time.DateOnly)
	if got := id & (1<<number.PeriodBits - 1); at != day || got != n {
		t.Errorf("issued number %d of %s, want %d of %s", got, at, n, day)
	}
}

// lateInTheDay sleeps until ten minutes before the end of 2000-01-01: nodes that run for a day make a test long.
func lateInTheDay() { time.Sleep(24*time.Hour - 10*time.Minute) }

// TestPeriod: numbers begin at 1 in each day, and what was left of the day before is never issued, neither one by one nor
// in a batch.
func TestPeriod(t *testing.T) {
	for name, take := range map[string]func(t *testing.T, a *segment.Allocator) int64{
		"one": nextOf,
		"a batch": func(t *testing.T, a *segment.Allocator) int64 {
			t.Helper()
			got, err := a.NextN(t.Context(), "order", 15)
			if err != nil {
				t.Fatal(err)
			}
			wantNumber(t, got[len(got)-1].Hi-1, "2000-01-02", 15)
			return got[0].Lo
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				lateInTheDay()
				a := node(t, newStore(daily()), nil, segment.Config{})
				for n := range int64(3) {
					wantNumber(t, nextOf(t, a), "2000-01-01", n+1)
				}
				time.Sleep(10*time.Minute - time.Nanosecond)
				wantNumber(t, nextOf(t, a), "2000-01-01", 4)
				synctest.Wait()
				time.Sleep(time.Nanosecond)
				wantNumber(t, take(t, a), "2000-01-02", 1)
				if lostBy(a, "period") == 0 {
					t.Error("what was left of the day is not counted")
				}
			})
		})
	}
}

// TestPeriodsOfZones: a period begins at midnight of its zone, also where a day has 25 hours or none has a midnight.
func TestPeriodsOfZones(t *testing.T) {
	for _, c := range []struct {
		period, zone, at, want string
	}{
		{number.Day, "", "2026-11-27T23:59:59Z", "2026-11-27"},
		{number.Day, "Asia/Shanghai", "2026-11-27T16:00:00Z", "2026-11-28"},
		{number.Day, "Europe/Berlin", "2026-10-25T22:59:59Z", "2026-10-25"}, // 25 hours
		{number.Day, "Europe/Berlin", "2026-10-25T23:00:00Z", "2026-10-26"},
		{number.Day, "America/Santiago", "2025-09-07T03:59:59Z", "2025-09-06"}, // from 23:59:59 to 01:00
		{number.Day, "America/Santiago", "2025-09-07T04:00:00Z", "2025-09-07"},
		{number.Month, "Europe/Berlin", "2026-11-30T22:59:59Z", "2026-11-01"},
		{number.Month, "Europe/Berlin", "2026-11-30T23:00:00Z", "2026-12-01"},
		{number.Year, "Europe/Berlin", "2026-12-31T23:00:00Z", "2027-01-01"},
	} {
		synctest.Test(t, func(t *testing.T) {
			at, err := time.Parse(time.RFC3339, c.at)
			if err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Until(at))
			a := node(t, newStore(withOptions(10, segment.Options{Period: c.period, PeriodZone: c.zone})), nil, segment.Config{})
			wantNumber(t, nextOf(t, a), c.want, 1)
		})
	}
}

// shifted is a clock that is ahead, or with a negative value behind.
type shifted struct {
	leaf.Runtime

	by atomic.Int64
}

func (s *shifted) Now() time.Time { return s.Runtime.Now().Add(time.Duration(s.by.Load())) }

func shiftedBy(d time.Duration) *shifted {
	s := &shifted{Runtime: leaf.SystemRuntime()}
	s.by.Store(int64(d))
	return s
}

// TestPeriodBySlowClock: the row decides. A node whose clock is behind issues what it has of the old day until it hears of the
// new one, and then numbers of the new one, which it does not move back.
func TestPeriodBySlowClock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStore(daily())
		nextOf(t, node(t, s, nil, segment.Config{NodeID: "right"}))
		synctest.Wait()
		wantNumber(t, nextOf(t, node(t, s, nil, segment.Config{NodeID: "slow", Runtime: shiftedBy(-10 * time.Minute)})), "2000-01-01", 11)
		late := node(t, s, nil, segment.Config{NodeID: "late", Runtime: shiftedBy(-61 * time.Minute)})
		if id, err := late.Next(t.Context(), "order"); !errors.Is(err, leaf.ErrNotReady) || !strings.Contains(err.Error(), "the period from 2000-01-01") {
			t.Errorf("more than an hour before the period begins: %d, %v; want ErrNotReady", id, err)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		s := newStore(withOptions(1000, segment.Options{Period: number.Day, FixedStep: true})) // chunks of 100: no call needs a load
		lateInTheDay()
		right := node(t, s, nil, segment.Config{NodeID: "right"})
		slow := node(t, s, nil, segment.Config{NodeID: "slow", Runtime: shiftedBy(-10 * time.Minute), SyncInterval: time.Minute})
		nextOf(t, right)
		nextOf(t, slow)
		synctest.Wait()
		time.Sleep(10*time.Minute + time.Second) // the slow node has just read the rows, and reads them in a minute again
		wantNumber(t, nextOf(t, right), "2000-01-02", 1)
		if id := nextOf(t, slow); id>>number.PeriodBits != 10957 {
			t.Errorf("the slow node has not heard of the new day, and issued %d", id)
		}
		time.Sleep(time.Minute + time.Second)
		id := nextOf(t, slow)
		if id>>number.PeriodBits != 10958 {
			t.Errorf("the slow node has read that the row is in the next day, and issued %d of the old one", id)
		}
		if next := nextOf(t, right); next == id {
			t.Errorf("both nodes issued %d", id)
		}
	})
}

// TestPeriodByFastClock: the row cannot be moved back, so a clock that is ahead of the database's does not move it.
func TestPeriodByFastClock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, clock := newStore(daily()), shiftedBy(25*time.Hour)
		fast := node(t, s, nil, segment.Config{NodeID: "fast", Runtime: clock, MaxWait: time.Second})
		if id, err := fast.Next(t.Context(), "order"); err == nil {
			t.Errorf("issued %d of tomorrow", id)
		}
		if row := s.maxID(t, "order"); row>>number.PeriodBits != 0 {
			t.Errorf("moved the row to %d", row)
		}
		clock.by.Store(0) // for the end of the test
		wantNumber(t, nextOf(t, node(t, s, nil, segment.Config{NodeID: "right"})), "2000-01-01", 1)
	})
}

// TestPeriodByClockThatIsSetRight: the reading that says which period it is, is the one that is compared with the
// database's clock. A clock that was a day ahead, and is set right between the two, moves no row.
func TestPeriodByClockThatIsSetRight(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, clock := newStore(daily()), shiftedBy(25*time.Hour)
		s.set(func(s *store) {
			s.onLookup = func(context.Context, string) error {
				clock.by.Store(0)
				return nil
			}
		})
		wantNumber(t, nextOf(t, node(t, s, nil, segment.Config{Runtime: clock})), "2000-01-01", 1)
	})
}

// TestPeriodIsUsedUp: the numbers of the next day are not those of this one.
func TestPeriodIsUsedUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lateInTheDay()
		s := newStore(daily())
		a := node(t, s, nil, segment.Config{MaxWait: time.Second})
		nextOf(t, a)
		synctest.Wait()
		last := int64(10957)<<number.PeriodBits + 1<<number.PeriodBits - 15
		if err := s.Update(t.Context(), "order", segment.Change{MaxID: &last}); err != nil {
			t.Fatal(err)
		}
		var highest int64
		for range 100 {
			if id, err := a.Next(t.Context(), "order"); err == nil {
				highest = id
			} else if !errors.Is(err, leaf.ErrOverflow) && !errors.Is(err, leaf.ErrNotReady) && !errors.Is(err, leaf.ErrExhausted) {
				t.Fatal(err)
			}
		}
		if highest>>number.PeriodBits != 10957 || highest < last {
			t.Errorf("the last number is %d, want one from %d on that is of the same day", highest, last)
		}
		time.Sleep(10 * time.Minute)
		if id := nextOf(t, a); id>>number.PeriodBits != 10958 {
			t.Errorf("issued %d on the next day", id)
		}
	})
}

// TestRegressBesideAPeriod: a row that went back is found, also in the moment when the node moves it to a new day.
func TestRegressBesideAPeriod(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lateInTheDay()
		s := newStore(daily())
		a := node(t, s, nil, segment.Config{})
		nextOf(t, a)
		synctest.Wait()
		lost := daily()
		lost.MaxID = -5
		s.Put(lost)
		time.Sleep(10 * time.Minute)
		if id, err := a.Next(t.Context(), "order"); !errors.Is(err, leaf.ErrRegress) {
			t.Errorf("a row below 0, at midnight: %d, %v; want ErrRegress", id, err)
		}
		if row := s.maxID(t, "order"); row != -5 {
			t.Errorf("moved the row to %d", row)
		}
	})
}

// TestPeriodWithStrictOrder: the owner's numbers begin anew, and another owner's are larger.
func TestPeriodWithStrictOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lateInTheDay()
		r := daily()
		r.Options.Order = segment.OrderStrict
		_, o, a, b := pair(t, r)
		o.own("a")
		wantNumber(t, nextOf(t, a), "2000-01-01", 1)
		time.Sleep(10 * time.Minute)
		wantNumber(t, nextOf(t, a), "2000-01-02", 1)
		synctest.Wait()
		high := nextOf(t, a)
		o.own("b")
		if id := nextOf(t, b); id <= high {
			t.Errorf("b issued %d after %d", id, high)
		}
		if id, err := a.Next(t.Context(), "order"); !errors.Is(err, leaf.ErrNotReady) {
			t.Errorf("a does not own the tag: %d, %v", id, err)
		}
	})
}

// TestPeriodThatIsTaken: a tag that gets a period drops what nodes hold; one that cannot be used stops the tag and is told.
func TestPeriodThatIsTaken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, l := newStore(row(10)), newAlarms()
		a := node(t, s, nil, segment.Config{Alarms: l})
		nextOf(t, a)
		synctest.Wait()
		if err := s.Update(t.Context(), "order", segment.Change{Period: new(number.Day)}); err != nil {
			t.Fatal(err)
		}
		refresh := func() {
			t.Helper()
			if err := a.Refresh(t.Context(), "order"); err != nil {
				t.Fatal(err)
			}
		}
		refresh()
		wantNumber(t, nextOf(t, a), "2000-01-01", 1)
		wrong := daily()
		wrong.MaxID = s.maxID(t, "order")
		wrong.Options.PeriodZone = "Mars/Olympus"
		s.Put(wrong)
		refresh()
		if id, err := a.Next(t.Context(), "order"); !errors.Is(err, leaf.ErrNotReady) || !strings.Contains(err.Error(), `period_zone="Mars/Olympus"`) {
			t.Errorf("%d, %v; want ErrNotReady that names the zone", id, err)
		}
		l.want(t, leaf.AlarmFormat+" order")
		wrong.Options.PeriodZone = ""
		s.Put(wrong)
		refresh()
		l.want(t)
		nextOf(t, a)
	})
}

// TestPeriodChanges: which change of a period is refused.
func TestPeriodChanges(t *testing.T) {
	day, none := segment.Options{Period: number.Day, PeriodZone: "Europe/Berlin"}, segment.Options{}
	for _, c := range []struct {
		name    string
		now     segment.Options
		maxID   int64
		change  segment.Change
		refused bool
	}{
		{"a first one", none, 1 << 50, segment.Change{Period: new(number.Month)}, false},
		{"a first one, above its numbers", none, 1 << 60, segment.Change{Period: new(number.Month)}, true},
		{"the same", day, 1 << 60, segment.Change{Period: new(number.Day), PeriodZone: new("Europe/Berlin")}, false},
		{"another option", day, 1 << 60, segment.Change{FixedStep: new(true)}, false},
		{"another period", day, 1, segment.Change{Period: new(number.Year)}, true},
		{"none", day, 1, segment.Change{Period: new(segment.PeriodNone), PeriodZone: new("")}, true},
		{"another zone", day, 1, segment.Change{PeriodZone: new("UTC")}, true},
	} {
		err := c.change.CheckPeriod(c.now, c.maxID)
		if c.refused != errors.Is(err, leaf.ErrConflict) || !c.refused && err != nil {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}

// TestPeriodHangs: a row that cannot be moved gives an error and no number, and the next try moves it.
func TestPeriodHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStore(daily())
		s.set(func(s *store) {
			s.onLookup = func(context.Context, string) error { return errDown }
		})
		a := node(t, s, nil, segment.Config{MaxWait: time.Second})
		if id, err := a.Next(t.Context(), "order"); err == nil {
			t.Errorf("issued %d", id)
		}
		s.heal()
		time.Sleep(time.Minute)
		if id := nextOf(t, a); id>>number.PeriodBits != 10957 || id&(1<<number.PeriodBits-1) != 1 {
			t.Errorf("issued %d", id)
		}
	})
}
