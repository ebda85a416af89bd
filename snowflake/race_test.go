package snowflake_test

import (
	"errors"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/leaf-idgen/leaf/snowflake"
)

// The next tests place another goroutine's step between two steps of a call: the
// clock's hook runs after the call has loaded the word and before it changes it.

// TestAddAfterTheUnitMoved: A has loaded the word of a unit, then B begins the next
// unit. A's add lands in B's unit, and A's ID must say so.
func TestAddAfterTheUnitMoved(t *testing.T) {
	clk := newClock(start)
	g := generator(t, clk.config(snowflake.Leaf()))
	a := parts(t, g)
	var b snowflake.Parts
	clk.atNow(func() {
		clk.step(time.Millisecond)
		b = parts(t, g)
		clk.step(-time.Millisecond) // what A's clock says is older
	})
	got := parts(t, g)
	want := snowflake.Parts{Unit: a.Unit + 1, Worker: 1, Sequence: b.Sequence + 1}
	if b.Unit != a.Unit+1 || got != want {
		t.Errorf("B took %+v, then A %+v; want %+v", b, got, want)
	}
}

// TestAddAfterTheCapacity: A has loaded a word with one number left, then B takes
// it. A's add finds none and A waits for the next unit.
func TestAddAfterTheCapacity(t *testing.T) {
	clk := newClock(start)
	g := generator(t, clk.config(small()))
	var unit int64
	for {
		p := parts(t, g)
		unit = p.Unit
		if p.Sequence == 6 {
			break
		}
	}
	var b snowflake.Parts
	clk.atNow(func() { b = parts(t, g) })
	got := parts(t, g)
	if b.Unit != unit || b.Sequence != 7 {
		t.Fatalf("B took %+v", b)
	}
	if want := (snowflake.Parts{Unit: unit + 1, Worker: 1}); got != want {
		t.Errorf("A took %+v, want %+v", got, want)
	}
	if w := clk.waits(); !slices.Equal(w, []time.Duration{time.Millisecond}) {
		t.Errorf("waited %v", w)
	}
}

// TestAddAfterStop: A has loaded the word, then Stop returns. A must take nothing,
// on the fast path, at the start of a unit and in a batch.
func TestAddAfterStop(t *testing.T) {
	for _, c := range []struct {
		name string
		step time.Duration
		take func(g *snowflake.Generator) error
	}{
		{"fast path", 0, func(g *snowflake.Generator) error { _, err := g.Next(t.Context()); return err }},
		{"fresh unit", time.Millisecond, func(g *snowflake.Generator) error { _, err := g.Next(t.Context()); return err }},
		{"batch", 0, func(g *snowflake.Generator) error { _, err := g.NextN(t.Context(), 3); return err }},
		{"batch in a fresh unit", time.Millisecond, func(g *snowflake.Generator) error { _, err := g.NextN(t.Context(), 3); return err }},
	} {
		t.Run(c.name, func(t *testing.T) {
			clk := newClock(start)
			g := generator(t, clk.config(snowflake.Leaf()))
			next(t, g)
			clk.step(c.step)
			var end int64
			clk.atNow(func() { end = g.Stop() })
			wantErr(t, c.take(g), snowflake.ErrStopped)
			if end != start+1 || g.Position() != end || g.Stop() != end {
				t.Errorf("Stop = %d, then position %d; want %d", end, g.Position(), start+1)
			}
			clk.set(start - 1)
			if got := g.Behind(); got != 2*time.Millisecond {
				t.Errorf("Behind = %v on a clock 2 ms before %d", got, end)
			}
		})
	}
}

// TestStopDuringAWait: a call that waits for the next unit finds the generator stopped.
func TestStopDuringAWait(t *testing.T) {
	clk := newClock(start)
	g := generator(t, clk.config(small()))
	fill(t, g)
	clk.atWait(func() { g.Stop(); clk.step(time.Millisecond) })
	refused(t, g, snowflake.ErrStopped)
}

// TestCarry: more goroutines than the counter has room for have pushed it into the
// next unit, which lies at the bound. Whoever's add lands there takes nothing.
func TestCarry(t *testing.T) {
	clk := newClock(start)
	c := clk.config(small())
	c.Bound = start + 1
	g := generator(t, c)
	at := parts(t, g)
	clk.atNow(func() { g.SetWord(at.Unit, g.CounterMask()) })
	refused(t, g, snowflake.ErrBound) // waits for a unit that lies at the bound
	clk.set(start)
	g.SetWord(at.Unit, 2)
	clk.atNow(func() { g.SetWord(at.Unit+1, 1) })
	if id, err := g.Next(t.Context()); err == nil {
		t.Fatalf("ID %d of %+v, at the bound", id, decode(t, g, id))
	}
	if p := g.Position(); p < start+1 {
		t.Errorf("position %d", p)
	}
}

// TestBoundRaisedMeanwhile: a bound that is raised while a call reads the clock counts.
func TestBoundRaisedMeanwhile(t *testing.T) {
	clk := newClock(start)
	c := clk.config(small())
	c.Bound = start
	g := generator(t, c)
	refused(t, g, snowflake.ErrBound)
	clk.atNow(func() {}) // the fast path's reading
	clk.atNow(func() { g.SetBound(start + 1) })
	next(t, g)
}

// TestManyGoroutines: 64 goroutines, single IDs and batches, on the real clock and in
// a layout whose units are used up all the time. All IDs differ, each goroutine's
// increase, and Stop lies above all of them.
func TestManyGoroutines(t *testing.T) {
	const per = 2_000
	for _, c := range []struct {
		name   string
		layout snowflake.Layout
	}{
		{"leaf", snowflake.Leaf()},
		{"256 IDs per ms", snowflake.Layout{Epoch: snowflake.LeafEpoch, Unit: time.Millisecond, TimeBits: 41, WorkerBits: 4, SequenceBits: 8}},
		{"wide", snowflake.Layout{Epoch: snowflake.LeafEpoch, Unit: time.Millisecond, TimeBits: 40, SequenceBits: 22}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			g := generator(t, snowflake.Config{Layout: c.layout, Bound: snowflake.NoBound, Tolerance: time.Second})
			took := make([][]int64, 64)
			var all sync.WaitGroup
			for i := range took {
				all.Go(func() {
					for len(took[i]) < per {
						if i%8 != 0 {
							id, err := g.Next(t.Context())
							if err != nil {
								t.Error(err)
								return
							}
							took[i] = append(took[i], id)
							continue
						}
						ranges, err := g.NextN(t.Context(), 1+len(took[i])%29)
						if err != nil {
							t.Error(err)
							return
						}
						for _, r := range ranges {
							for id := r.Lo; id < r.Hi; id++ {
								took[i] = append(took[i], id)
							}
						}
					}
				})
			}
			all.Wait()
			end := c.layout.Ceil(g.Stop())
			distinct(t, took, func(id int64) {
				if u := decode(t, g, id).Unit; u >= end {
					t.Fatalf("an ID of unit %d, but stopped at %d", u, end)
				}
			})
		})
	}
}

// distinct fails if an ID occurs twice, or if one goroutine's do not increase.
func distinct(t *testing.T, took [][]int64, also func(id int64)) {
	t.Helper()
	var ids []int64
	for _, list := range took {
		for i, id := range list {
			if i > 0 && id <= list[i-1] {
				t.Fatalf("%d after %d", id, list[i-1])
			}
			also(id)
		}
		ids = append(ids, list...)
	}
	slices.Sort(ids)
	for i := range ids {
		if i > 0 && ids[i] == ids[i-1] {
			t.Fatalf("ID %d twice", ids[i])
		}
	}
}

// TestHandover is what Stop is for: again and again a generator is stopped under
// load, and the next one of the same worker starts at what Stop returned. No ID
// occurs twice, and what is called after Stop fails.
func TestHandover(t *testing.T) {
	const goroutines, rounds = 4, 100
	l := snowflake.Layout{Epoch: snowflake.LeafEpoch, Unit: time.Millisecond, TimeBits: 41, SequenceBits: 20}
	c := snowflake.Config{Layout: l, Bound: snowflake.NoBound, Tolerance: time.Second}
	took := make([][]int64, goroutines+1)
	for range rounds {
		g := generator(t, c)
		var all sync.WaitGroup
		for i := range goroutines {
			all.Go(func() {
				for range 1000 {
					id, err := g.Next(t.Context())
					if err != nil {
						if !errors.Is(err, snowflake.ErrStopped) {
							t.Error(err)
						}
						return
					}
					took[i] = append(took[i], id)
				}
			})
		}
		for range 200 {
			took[goroutines] = append(took[goroutines], next(t, g))
		}
		c.Floor = g.Stop()
		refused(t, g, snowflake.ErrStopped)
		all.Wait()
		if again := g.Stop(); again != c.Floor {
			t.Errorf("Stop = %d, then %d", c.Floor, again)
		}
		for _, list := range took {
			if len(list) > 0 && l.Millis(decode(t, g, list[len(list)-1]).Unit) >= c.Floor {
				t.Fatalf("an ID at or above what Stop returned")
			}
		}
	}
	distinct(t, took, func(int64) {})
}

// TestStopWhileUnitsPass: each reading of the clock is a unit later, so that Stop again
// and again meets a call that moves the word. What Stop returns lies above all IDs.
func TestStopWhileUnitsPass(t *testing.T) {
	var ms atomic.Int64
	ms.Store(start)
	l := snowflake.Leaf()
	for range 1500 {
		g := generator(t, snowflake.Config{
			Layout: l, Bound: snowflake.NoBound, Floor: ms.Load(),
			Now: func() time.Time { return time.UnixMilli(ms.Add(1)) },
		})
		taken := make(chan int64)
		go func() {
			last := int64(0)
			for {
				id, err := g.Next(t.Context())
				if err != nil {
					taken <- last
					return
				}
				last = id
			}
		}()
		for before := g.Position(); g.Position() < before+20; {
			runtime.Gosched()
		}
		end := g.Stop()
		if last := l.Millis(decode(t, g, <-taken).Unit); last >= end {
			t.Fatalf("an ID of %d, but Stop returned %d", last, end)
		}
	}
}

// TestBoundUnderLoad: 8 goroutines run into a bound that lies 10 ms ahead. No ID
// reaches it, and all end there.
func TestBoundUnderLoad(t *testing.T) {
	l := snowflake.Leaf()
	bound := time.Now().UnixMilli() + 10
	g := generator(t, snowflake.Config{Layout: l, Bound: bound})
	took := make([][]int64, 8)
	var all sync.WaitGroup
	for i := range took {
		all.Go(func() {
			for {
				id, err := g.Next(t.Context())
				if err != nil {
					if !errors.Is(err, snowflake.ErrBound) {
						t.Error(err)
					}
					return
				}
				took[i] = append(took[i], id)
			}
		})
	}
	all.Wait()
	distinct(t, took, func(id int64) {
		if ms := l.Millis(decode(t, g, id).Unit); ms >= bound {
			t.Fatalf("an ID at %d, the bound is %d", ms, bound)
		}
	})
}
