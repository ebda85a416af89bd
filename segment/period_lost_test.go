package segment_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/number"
	"github.com/leaf-idgen/leaf/segment"
)

// TestRowBackInAnEarlierPeriod: the database forgets all of today, and the next load is that of a node that has taken no
// range of the tag. It has read the row in today's period, to which no return of unused IDs takes a row back. So it does not
// begin the period again, from whose first numbers another node has issued.
func TestRowBackInAnEarlierPeriod(t *testing.T) {
	for name, atOnce := range map[string]bool{"that the node has read": false, "that the node has begun": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, ids := newStore(daily()), newLedger()
				a := node(t, s, nil, segment.Config{NodeID: "a"})
				b := node(t, s, nil, segment.Config{NodeID: "b"})
				lose := func() {
					for range 3 {
						id, err := b.Next(t.Context(), "order")
						if err != nil {
							t.Error(err)
						}
						ids.add(t, "b", id)
					}
					synctest.Wait() // b has the ranges that it wants, and finds the loss later
					if !atOnce {
						if err := a.Refresh(t.Context(), "order"); err != nil {
							t.Error(err)
						}
					}
					yesterday := daily()
					yesterday.MaxID = 11 // not below a's range of yesterday
					s.Put(yesterday)
				}
				if loads := 0; atOnce { // between the end of yesterday and the first range of today
					s.set(func(s *store) {
						s.onReserve = func(_ context.Context, _ segment.Request, do func() (segment.Reservation, error)) (segment.Reservation, error) {
							if loads++; loads == 2 {
								s.heal()
								lose()
							}
							return do()
						}
					})
				} else {
					lose()
				}
				id, err := a.Next(t.Context(), "order")
				if err == nil {
					ids.add(t, "a", id)
				}
				if !errors.Is(err, leaf.ErrRegress) {
					t.Fatalf("%d, %v; want ErrRegress", id, err)
				}
				if _, err := a.Repair(t.Context(), "order", 0); err != nil {
					t.Fatal(err)
				}
				ids.add(t, "a", drain(t, a, "order", 20)...)
			})
		})
	}
}

// TestPeriodIsLostWithItsRow: the database goes back to before the tag had a period. A node that has only read the row in its
// period takes no range that another one issued before, although the row has no period any more.
func TestPeriodIsLostWithItsRow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, ids := newStore(row(10)), newLedger()
		before, err := s.Lookup(t.Context(), "order")
		if err != nil {
			t.Fatal(err)
		}
		b := node(t, s, nil, segment.Config{NodeID: "b"})
		ids.add(t, "b", drain(t, b, "order", 20)...)
		synctest.Wait()
		now := daily()
		now.MaxID = s.maxID(t, "order")
		s.Put(now)
		a := node(t, s, nil, segment.Config{NodeID: "a"})
		for _, n := range []*segment.Allocator{b, a} {
			if err := n.Refresh(t.Context(), "order"); err != nil {
				t.Fatal(err)
			}
		}
		ids.add(t, "b", drain(t, b, "order", 1)...)
		if err := a.Refresh(t.Context(), "order"); err != nil {
			t.Fatal(err)
		}
		s.Put(before)
		if err := a.Refresh(t.Context(), "order"); err != nil {
			t.Fatal(err)
		}
		id, err := a.Next(t.Context(), "order")
		if err == nil {
			ids.add(t, "a", id)
		}
		if !errors.Is(err, leaf.ErrRegress) {
			t.Fatalf("%d, %v; want ErrRegress", id, err)
		}
	})
}

// TestRepairAboveOfALaterPeriod: an operator who adds generously to the highest number, as the texts say, does not move the
// row to a later day: no node would issue a number of the tag until then.
func TestRepairAboveOfALaterPeriod(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(22 * time.Hour) // in the last hour of a day a row may be in the next one
		s := newStore(daily())
		a := node(t, s, nil, segment.Config{})
		id := nextOf(t, a)
		tomorrow := int64(10958) << number.PeriodBits
		for _, above := range []int64{tomorrow, id + 1e12} {
			_, err := a.Repair(t.Context(), "order", above)
			plan, planned := a.PlanRepair(t.Context(), "order", above)
			if !errors.Is(err, leaf.ErrConflict) || !strings.Contains(err.Error(), "the next period") || planned != nil || plan.Refused != err.Error() {
				t.Errorf("above %d: %v; the plan: %q, %v; want ErrConflict for the next period", above, err, plan.Refused, planned)
			}
		}
		wantNumber(t, nextOf(t, a), "2000-01-01", 2)
		if _, err := a.Repair(t.Context(), "order", tomorrow-1e9); err != nil {
			t.Errorf("above a number of today: %v", err)
		}
		nextOf(t, a)

		beyond := daily() // by a clock that was wrong
		beyond.MaxID = tomorrow + 5
		s.Put(beyond)
		if _, err := a.Repair(t.Context(), "order", tomorrow+50); err != nil {
			t.Errorf("a row that is in the next day already: %v", err)
		}
		time.Sleep(2 * time.Hour)
		wantNumber(t, nextOf(t, a), "2000-01-02", 51)
	})
}

// TestRepairToTheEndOfAPeriod: a node is gone with its data directory, and what the texts say to add is more than the period has.
// The number of the refusal is taken, ends the period, and repeats nothing.
func TestRepairToTheEndOfAPeriod(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(time.Hour)
		s, ids := newStore(daily()), newLedger()
		b := &board{store: s}
		gone := node(t, b, nil, segment.Config{NodeID: "gone"})
		ids.add(t, "gone", drain(t, gone, "order", 100)...)
		synctest.Wait()
		b.change(func(b *board) { b.onNotices = func() error { return errDown } })
		s.Put(daily())

		a := node(t, s, nil, segment.Config{NodeID: "a"})
		_, err := a.Repair(t.Context(), "order", 10957<<number.PeriodBits+1e12)
		wantErr(t, err, leaf.ErrConflict)
		last, found := int64(0), false
		if _, text, said := strings.Cut(err.Error(), "the sum cannot be lower, give "); said {
			_, err := fmt.Sscan(text, &last)
			found = err == nil
		}
		if !found {
			t.Fatal(err)
		}
		if _, err := a.Repair(t.Context(), "order", last); err != nil {
			t.Fatal(err)
		}
		if id, err := a.Next(t.Context(), "order"); !errors.Is(err, leaf.ErrNotReady) {
			t.Errorf("issued %d in the period that has ended, %v", id, err)
		}
		time.Sleep(23 * time.Hour)
		next := drain(t, a, "order", 100)
		ids.add(t, "a", next...)
		if day := next[0] >> number.PeriodBits; day != 10958 {
			t.Errorf("issued %d of the day %d", next[0], day)
		}
	})
}

// TestRepairToTheEndOfAPeriodInItsLastHour: the refusal names the end of the period that is now, as in any other hour, or the tag
// would issue nothing all through the next one.
func TestRepairToTheEndOfAPeriodInItsLastHour(t *testing.T) {
	for name, row := range map[string]int64{"row of the day": 10957, "row of the next day": 10958} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				time.Sleep(23*time.Hour + 30*time.Minute)
				held := daily()
				held.MaxID = row<<number.PeriodBits + 100
				s := newStore(held)
				a := node(t, s, nil, segment.Config{NodeID: "a"})
				_, err := a.Repair(t.Context(), "order", 10957<<number.PeriodBits+1e12)
				wantErr(t, err, leaf.ErrConflict)
				if last := (row+1)<<number.PeriodBits - 1; !strings.Contains(err.Error(), fmt.Sprintf("the sum cannot be lower, give %d ", last)) {
					t.Errorf("%v; want the number %d", err, last)
				}
			})
		})
	}
}

// TestRepairAboveOfAnEarlierPeriod: a node has begun a day, and is gone with its data directory. No table has a number of the
// day yet, and the database has forgotten it. A repair above the number that the text says is refused in the day before, and
// above the one that the refusal says repeats none.
func TestRepairAboveOfAnEarlierPeriod(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(24*time.Hour - time.Minute)
		s, ids := newStore(daily()), newLedger()
		b := &board{store: s}
		gone := node(t, b, nil, segment.Config{NodeID: "gone"})
		inTables := nextOf(t, gone)
		ids.add(t, "gone", inTables)
		synctest.Wait()
		backup := daily()
		backup.MaxID = s.maxID(t, "order")
		time.Sleep(2 * time.Minute)
		held := drain(t, gone, "order", 3) // by clients, in no table
		ids.add(t, "gone", held...)
		b.change(func(b *board) { b.onNotices = func() error { return errDown } })
		s.Put(backup)

		a := node(t, s, nil, segment.Config{NodeID: "a"})
		const add = 3*10 + 3
		_, err := a.Repair(t.Context(), "order", inTables+add)
		if err == nil {
			ids.add(t, "a", drain(t, a, "order", 3)...)
		}
		first := int64(10958)<<number.PeriodBits + 1
		if wantErr(t, err, leaf.ErrConflict); !strings.Contains(err.Error(), fmt.Sprintf("Take its first number, %d, for the highest one and give that number plus three times", first)) {
			t.Fatal(err)
		}
		if _, err := a.Repair(t.Context(), "order", first+add); err != nil {
			t.Fatal(err)
		}
		ids.add(t, "a", drain(t, a, "order", 100)...)
	})
}

// TestRowIsMadeAgainInAnEarlierPeriod: a node has begun a day, and is gone with its data directory and the database. No table
// has a number of the day yet. A row above the number that the texts say is refused in the day before, and above the one that
// the refusal says repeats none.
func TestRowIsMadeAgainInAnEarlierPeriod(t *testing.T) {
	for name, write := range map[string]func(s *store, number int64) error{
		"a new row": func(s *store, number int64) error {
			return s.Create(t.Context(), segment.NewRow{Tag: "order", Start: number, Step: 10, Options: daily().Options})
		},
		"a row that is there": func(s *store, number int64) error {
			s.Put(daily())
			return s.Update(t.Context(), "order", segment.Change{MaxID: &number})
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				time.Sleep(24*time.Hour - time.Minute)
				ids := newLedger()
				gone := node(t, newStore(daily()), nil, segment.Config{NodeID: "gone"})
				inTables := nextOf(t, gone)
				ids.add(t, "gone", inTables)
				time.Sleep(2 * time.Minute)
				ids.add(t, "gone", drain(t, gone, "order", 3)...) // by clients, in no table

				s := newStore()
				const add = 3*10 + 3
				first := int64(10958)<<number.PeriodBits + 1
				err := write(s, inTables+add)
				if says := fmt.Sprintf("Take its first number, %d, for the highest one and give that number plus three times", first); err == nil || !strings.Contains(err.Error(), says) {
					t.Errorf("a number of the day before: %v; want %q", err, says)
				}
				if err != nil {
					err = write(s, first+add)
				}
				if err != nil {
					t.Fatal(err)
				}
				a := node(t, s, nil, segment.Config{NodeID: "a"})
				ids.add(t, "a", drain(t, a, "order", 100)...)
			})
		})
	}
}

// TestDeletedTagInALaterPeriod: a tag that was deleted is made again on another day. The start that the refusal names is one of
// this day: one of the day before is refused.
func TestDeletedTagInALaterPeriod(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		yesterday := daily()
		yesterday.MaxID = 10957<<number.PeriodBits + 41
		s := newStore(yesterday)
		time.Sleep(24 * time.Hour)
		if err := s.Delete(t.Context(), "order"); err != nil {
			t.Fatal(err)
		}
		createAgainWith(t, s, daily().Options, 10958<<number.PeriodBits+1)
		wantNumber(t, nextOf(t, node(t, s, nil, segment.Config{})), "2000-01-02", 1)
	})
}

// TestRowIsGoneInAnEarlierPeriod: a row is deleted with SQL on the day that a node has begun, which is gone with its data
// directory. Another node tells a number of the day before. No table has a number of the day yet. The operator creates the tag
// again as the refusal says, and no number repeats.
func TestRowIsGoneInAnEarlierPeriod(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(24*time.Hour - 10*time.Minute)
		s, ids := newStore(daily()), newLedger()
		a := node(t, s, nil, segment.Config{NodeID: "a"})
		inTables := nextOf(t, a)
		ids.add(t, "a", inTables)
		time.Sleep(15 * time.Minute)
		const held = 3 // by clients, in no table
		gone := node(t, s, nil, segment.Config{NodeID: "gone"})
		ids.add(t, "gone", drain(t, gone, "order", held)...)
		if err := gone.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		s.Remove("order")
		time.Sleep(2 * time.Minute)
		createAsSaid(t, s, daily().Options, inTables, held+3*10*2)
		time.Sleep(2 * time.Minute)
		ids.add(t, "a", drain(t, a, "order", 100)...)
	})
}
