package segment_test

import (
	"math"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/segment"
)

// TestScarcestFirst: the tags of which IDs are taken come in the order of how long their stock
// lasts, then those of which none are, and a tag that is used no more becomes one of them.
func TestScarcestFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStore()
		for _, tag := range []string{"busy", "calm", "idle"} {
			s.Put(segment.Row{Tag: tag, MaxID: 1, Step: 600})
		}
		a := node(t, s, newDisk(), segment.Config{FixedStep: true})
		next(t, a, "idle")
		time.Sleep(3 * time.Minute) // idle has no use within the last two looks
		for range 600 {
			next(t, a, "busy")
			next(t, a, "busy")
			next(t, a, "calm")
			time.Sleep(200 * time.Millisecond)
		}
		synctest.Wait() // the minute's look at the rates is due at this moment, too
		tags, used := a.Scarcest(2)
		if used != 3 || len(tags) != 2 || tags[0].Tag != "busy" || tags[1].Tag != "calm" {
			t.Fatalf("%d tags are used, and the scarcest are %+v", used, tags)
		}
		if busy := tags[0]; math.Abs(busy.Rate-10) > 0.1 || math.Abs(busy.Lasts()-float64(busy.Stock)/10) > 1 || busy.Stock < 600 {
			t.Errorf("busy: %g IDs per second from a stock of %d that lasts %g s", busy.Rate, busy.Stock, busy.Lasts())
		}
		if calm := tags[1]; math.Abs(calm.Rate-5) > 0.1 {
			t.Errorf("calm: %g IDs per second", calm.Rate)
		}
		usages := map[string]segment.Usage{}
		for u := range a.Usages() {
			usages[u.Tag] = u
		}
		for _, st := range a.Snapshot() {
			if want := (segment.Usage{Tag: st.Tag, Issued: st.Issued, Rate: st.Rate, Length: st.Length, Stock: st.Stock}); usages[st.Tag] != want {
				t.Errorf("the usage is %+v, want %+v", usages[st.Tag], want)
			}
		}
		time.Sleep(3 * time.Minute)
		for _, st := range a.Snapshot() {
			if st.Rate != 0 || !math.IsInf(st.Lasts(), 1) {
				t.Errorf("%s: %g IDs per second after three minutes without use", st.Tag, st.Rate)
			}
		}
	})
}

// TestLossesHaveAReason: the IDs of ranges that were dropped, by the reason.
func TestLossesHaveAReason(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStore()
		s.Put(segment.Row{Tag: "order", MaxID: 1, Step: 100})
		a := node(t, s, newDisk(), segment.Config{FixedStep: true, KeepUnused: true})
		next(t, a, "order")
		synctest.Wait()
		if err := a.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		st := a.Status()
		for _, l := range st.LostBy {
			if want := map[string]int64{"stop": st.Lost}[l.Reason]; l.IDs != want || st.Lost != 99 {
				t.Errorf("%d IDs of %d lost for the reason %s, want %d", l.IDs, st.Lost, l.Reason, want)
			}
		}
		if len(st.LostBy) == 0 {
			t.Error("no reasons")
		}
	})
}

// TestFailureEndsWithItsCause: a tag whose last load failed is told of until the cause is gone, also where no caller comes to
// find out. An alert would else last for ever where another node issues the tag now, or until the next caller.
func TestFailureEndsWithItsCause(t *testing.T) {
	type begin func(t *testing.T) (a *segment.Allocator, mend func())
	for name, c := range map[string]struct {
		begin   begin
		problem string
	}{
		"another node owns the tag": {func(t *testing.T) (*segment.Allocator, func()) {
			s, o := newStore(strictRow(10)), &terms{}
			a := node(t, s, nil, segment.Config{Terms: o.node("a"), MaxWait: time.Second})
			o.own("a")
			nextOf(t, a)
			s.breakDown()
			useUntil(t, a, newLedger(), leaf.ErrExhausted)
			return a, func() { o.own("b"); s.heal() }
		}, "not_ready"},
		"the tag is repaired": {func(t *testing.T) (*segment.Allocator, func()) {
			s := newStore(row(10))
			a := node(t, s, nil, segment.Config{FixedStep: true})
			drain(t, a, "order", 5)
			synctest.Wait()
			s.Put(row(10))
			useUntil(t, a, newLedger(), leaf.ErrRegress)
			return a, func() {
				if _, err := a.Repair(t.Context(), "order", 500); err != nil {
					t.Fatal(err)
				}
			}
		}, "regress"},
		"the row is right again": {func(t *testing.T) (*segment.Allocator, func()) {
			s := newStore(row(-5))
			a := node(t, s, nil, segment.Config{})
			_, err := a.Next(t.Context(), "order")
			wantErr(t, err, leaf.ErrInvalidRow)
			return a, func() { s.Put(row(10)) }
		}, "invalid_row"},
		"the clock is right again": {func(t *testing.T) (*segment.Allocator, func()) {
			clock := shiftedBy(25 * time.Hour)
			a := node(t, newStore(daily()), nil, segment.Config{Runtime: clock, MaxWait: time.Second})
			_, err := a.Next(t.Context(), "order")
			wantErr(t, err, leaf.ErrNotReady)
			return a, func() { clock.by.Store(0) }
		}, "not_ready"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				a, mend := c.begin(t)
				tells := func(problem string) {
					t.Helper()
					time.Sleep(5 * time.Minute)
					for u := range a.Usages() {
						if (u.Failures > 0) != (problem != "") {
							t.Errorf("%d failures in the usage, and the problem should be %q", u.Failures, problem)
						}
					}
					for _, st := range a.Snapshot() {
						if st.Problem != problem || (st.Failures > 0) != (problem != "") || (st.Failed != nil) != (problem != "") {
							t.Errorf("%d failures, problem %q, %v; want the problem %q", st.Failures, st.Problem, st.Failed, problem)
						}
					}
				}
				tells(c.problem)
				mend()
				tells("")
			})
		})
	}
}
