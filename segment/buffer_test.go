package segment_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leaf-idgen/leaf/internal/test/long"
	"github.com/leaf-idgen/leaf/segment"
)

// TestDoubleBuffer: the next range is loaded when a tenth of the current one is
// used, not before, and nobody ever waits again.
func TestDoubleBuffer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStore(row(2000))
		a := node(t, s, nil, segment.Config{FixedStep: true})
		for _, c := range []struct{ take, reserves int }{
			{1, 1},      // the first request loads
			{199, 1},    // 200 of 2000 used up
			{1, 2},      // the 201st asks for the next range
			{1799, 2},   // the rest of the first range
			{200, 2},    // a tenth of the second
			{1, 3},      // and so on
			{20000, 13}, // ten ranges
		} {
			for range c.take {
				next(t, a, "order")
				synctest.Wait()
			}
			if got := s.count(); got != c.reserves {
				t.Fatalf("after %d more IDs: %d ranges reserved, want %d", c.take, got, c.reserves)
			}
		}
		if got := a.Status().Waits; got != 1 {
			t.Fatalf("%d calls waited, want only the very first", got)
		}
	})
}

// TestPrefetchIsAskedForAgain: a load that failed at the first boundary is asked
// for at the next one, while the stock lasts.
func TestPrefetchIsAskedForAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStore(row(1000))
		a := node(t, s, nil, segment.Config{FixedStep: true})
		next(t, a, "order")
		s.breakDown()
		drain(t, a, "order", 350)
		time.Sleep(100 * time.Millisecond) // longer than the pause after one failure, shorter than the pause before a retry without a caller
		s.heal()
		before := s.count()
		drain(t, a, "order", 100)
		synctest.Wait()
		if got := s.count(); got != before+1 {
			t.Fatalf("%d loads after the store healed, want 1", got-before)
		}
		waits := a.Status().Waits
		drain(t, a, "order", 1500)
		if got := a.Status().Waits; got != waits {
			t.Fatalf("%d calls waited although the next range was loaded in time", got-waits)
		}
	})
}

// TestDynamicStep lets ranges last for given times and looks at the lengths that
// follow. A range lasts from the request for it to the request for the next one.
func TestDynamicStep(t *testing.T) {
	long.Plain(t)
	const m = time.Minute
	for _, c := range []struct {
		name string
		cfg  segment.Config
		row  segment.Row
		last []time.Duration // how long each range lasts, from the second on
		want []int64         // lengths, from the first on
	}{
		{"quick ranges double", segment.Config{}, row(100), []time.Duration{m, m, m, m}, []int64{100, 100, 200, 400, 800, 1600}},
		{"just under 15 minutes doubles", segment.Config{}, row(100), []time.Duration{15*m - 1}, []int64{100, 100, 200}},
		{"15 minutes keep", segment.Config{}, row(100), []time.Duration{15 * m}, []int64{100, 100, 100}},
		{"30 minutes keep", segment.Config{}, row(100), []time.Duration{m, 30 * m}, []int64{100, 100, 200, 200}},
		{"just over 30 minutes halves", segment.Config{}, row(100), []time.Duration{m, 30*m + 1}, []int64{100, 100, 200, 100}},
		{"never below the row's step", segment.Config{}, row(100), []time.Duration{m, 40 * m, 40 * m, 40 * m}, []int64{100, 100, 200, 100, 100, 100}},
		{"doubling ends at the limit", segment.Config{MaxStep: 350}, row(100), []time.Duration{m, m, m, m}, []int64{100, 100, 200, 350, 350, 350}},
		{"a row's step above the limit is its own limit", segment.Config{MaxStep: 50}, row(100), []time.Duration{m, m}, []int64{100, 100, 100, 100}},
		{"off for the node", segment.Config{FixedStep: true}, row(100), []time.Duration{m, m}, []int64{100, 100, 100, 100}},
		{"off for the tag", segment.Config{}, withOptions(100, segment.Options{FixedStep: true}), []time.Duration{m, m}, []int64{100, 100, 100, 100}},
		{"bounds of the tag", segment.Config{}, withOptions(100, segment.Options{MinStep: 150, MaxStep: 500}), []time.Duration{m, m, m, 40 * m, 40 * m, 40 * m}, []int64{150, 150, 300, 500, 500, 250, 150, 150}},
		{"upper bound below the row's step", segment.Config{}, withOptions(100, segment.Options{MaxStep: 60}), []time.Duration{m}, []int64{60, 60, 60}},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newStore(c.row)
				a := node(t, s, nil, c.cfg)
				end, used := int64(1), int64(0)
				for i, want := range c.want {
					// Use a tenth of the range before, which asks for this one.
					if i == 0 {
						drain(t, a, "order", 1)
						used = 1
					} else {
						boundary := end - c.want[i-1] + (c.want[i-1]+9)/10 - 1
						drain(t, a, "order", int(boundary-used+1))
						used = boundary + 1
					}
					synctest.Wait()
					got := s.maxID(t, "order") - end
					if got != want {
						t.Fatalf("range %d has length %d, want %d", i+1, got, want)
					}
					end += got
					if i > 0 && i-1 < len(c.last) {
						time.Sleep(c.last[i-1])
					}
				}
			})
		})
	}
}

func withOptions(step int64, o segment.Options) segment.Row {
	r := row(step)
	r.Options = o
	return r
}

// TestEditedStepKeepsTheBounds: a step that is edited in the database counts from the
// next load, within the tag's own bounds, whether the node knows of the edit or not.
func TestEditedStepKeepsTheBounds(t *testing.T) {
	for _, c := range []struct {
		name    string
		options segment.Options
		before  int64
		step    int64 // as edited
		want    int64 // length of the next range
	}{
		{"above max_step", segment.Options{MaxStep: 150}, 100, 1000, 150},
		{"below min_step", segment.Options{MinStep: 80}, 100, 10, 80},
		{"within", segment.Options{MinStep: 50, MaxStep: 150}, 60, 120, 120},
	} {
		for _, told := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, told=%v", c.name, told), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					s := newStore(withOptions(c.before, c.options))
					a := node(t, s, nil, segment.Config{SyncInterval: time.Hour})
					next(t, a, "order")
					if err := s.Update(t.Context(), "order", segment.Change{Step: &c.step}); err != nil {
						t.Fatal(err)
					}
					if told {
						if err := a.Refresh(t.Context(), "order"); err != nil {
							t.Fatal(err)
						}
					}
					before := s.maxID(t, "order")
					drain(t, a, "order", 15)
					synctest.Wait()
					if got := s.maxID(t, "order") - before; got != c.want {
						t.Errorf("the range after the edit has length %d, want %d", got, c.want)
					}
				})
			})
		}
	}
}

// TestStepEditedInTheDatabase counts from the next load, in both directions, also
// between the first and the second one, and whatever the dynamic step was.
func TestStepEditedInTheDatabase(t *testing.T) {
	for _, c := range []struct {
		before int // loads before the edit
		to     int64
		synced bool // whether a sync brings the news before the load does
	}{
		{1, 13, false},
		{1, 50_000, false},
		{2, 13, false},
		{2, 50_000, false},
		{5, 13, false},
		{5, 50_000, false},
		{1, 50_000, true},
		{5, 13, true},
		{5, 50_000, true},
	} {
		t.Run(fmt.Sprintf("after %d loads to %d, synced=%v", c.before, c.to, c.synced), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newStore(row(200))
				a := node(t, s, nil, segment.Config{SyncInterval: time.Minute})
				for s.count() < c.before {
					next(t, a, "order")
					synctest.Wait()
				}
				if err := s.Update(t.Context(), "order", segment.Change{Step: &c.to}); err != nil {
					t.Fatal(err)
				}
				if c.synced {
					time.Sleep(2 * time.Minute)
				}
				end := s.maxID(t, "order")
				for s.count() == c.before {
					next(t, a, "order")
					synctest.Wait()
				}
				if got := s.maxID(t, "order") - end; got != c.to {
					t.Fatalf("the next range has length %d, want %d", got, c.to)
				}
			})
		})
	}
}

// TestStepEditedBetweenAllLoads is the bug of Leaf 26e3965 and goLeaf: a range
// computed from a step that is no longer the row's overlaps the one before.
func TestStepEditedBetweenAllLoads(t *testing.T) {
	s := newStore(row(5))
	a := node(t, s, nil, segment.Config{})
	b := node(t, s, nil, segment.Config{NodeID: "node-2"})
	ids := newLedger()
	last := [2]int64{}
	for i := range 3000 {
		step := int64(1 + i%17)
		if err := s.Update(t.Context(), "order", segment.Change{Step: &step}); err != nil {
			t.Fatal(err)
		}
		for n, alloc := range []*segment.Allocator{a, b} {
			id := next(t, alloc, "order")
			ids.add(t, fmt.Sprint("node ", n), id)
			if id <= last[n] {
				t.Fatalf("node %d: %d follows %d", n, id, last[n])
			}
			last[n] = id
		}
	}
}
