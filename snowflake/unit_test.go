package snowflake_test

import (
	"errors"
	"math"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/leaf-idgen/leaf/snowflake"
)

// TestCeilFloor pins the conversions at their edges, for each unit.
func TestCeilFloor(t *testing.T) {
	const e = 1_000_000
	ms := snowflake.Layout{Epoch: e, Unit: time.Millisecond, TimeBits: 10, SequenceBits: 4}
	ten := snowflake.Layout{Epoch: e + 3, Unit: 10 * time.Millisecond, TimeBits: 10, SequenceBits: 4}
	sec := snowflake.Layout{Epoch: e + 3, Unit: time.Second, TimeBits: 10, SequenceBits: 4}
	const last = 1<<10 - 2 // the last unit with IDs; Ceil never returns more than last + 1
	for _, c := range []struct {
		name        string
		layout      snowflake.Layout
		at          int64
		ceil, floor int64 // floor -1: before the epoch, -2: overflow
	}{
		{"1ms at the epoch", ms, e, 0, 0},
		{"1ms before it", ms, e - 1, 0, -1},
		{"1ms after it", ms, e + 1, 1, 1},
		{"1ms last", ms, e + last, last, last},
		{"1ms end", ms, e + last + 1, last + 1, -2},
		{"1ms past the end", ms, e + last + 2, last + 1, -2},
		{"1ms minimum", ms, math.MinInt64, 0, -1},
		{"1ms maximum", ms, math.MaxInt64, last + 1, -2},
		{"10ms at the epoch", ten, e + 3, 0, 0},
		{"10ms just before it", ten, e + 2, 0, -1},
		{"10ms one in", ten, e + 4, 1, 0},
		{"10ms nine in", ten, e + 12, 1, 0},
		{"10ms ten in", ten, e + 13, 1, 1},
		{"10ms eleven in", ten, e + 14, 2, 1},
		{"1s just before", sec, e + 3 - 1, 0, -1},
		{"1s one in", sec, e + 4, 1, 0},
		{"1s 999 in", sec, e + 1002, 1, 0},
		{"1s 1000 in", sec, e + 1003, 1, 1},
		{"1s within the last", sec, e + 3 + last*1000 + 1, last + 1, last},
		{"1s end", sec, e + 3 + (last+1)*1000, last + 1, -2},
		{"1s maximum", sec, math.MaxInt64, last + 1, -2},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := c.layout.Ceil(c.at); got != c.ceil {
				t.Errorf("Ceil = %d, want %d", got, c.ceil)
			}
			got, err := c.layout.Floor(c.at)
			switch c.floor {
			case -1:
				if !errors.Is(err, snowflake.ErrInvalid) {
					t.Errorf("Floor = %d, %v; want ErrInvalid", got, err)
				}
			case -2:
				if !errors.Is(err, snowflake.ErrOverflow) {
					t.Errorf("Floor = %d, %v; want ErrOverflow", got, err)
				}
			default:
				if err != nil || got != c.floor {
					t.Errorf("Floor = %d, %v; want %d", got, err, c.floor)
				}
			}
		})
	}
}

// TestUnitsRoundUp is rule F: for every layout and moment, the unit of Ceil starts
// at or after the moment and the one before it starts earlier; Floor's contains it.
func TestUnitsRoundUp(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l := layouts().Draw(t, "layout")
		span := l.End().UnixMilli() - l.Epoch
		at := l.Epoch + rapid.OneOf(rapid.Int64Range(0, span), rapid.SampledFrom([]int64{0, min(1, span), span})).Draw(t, "at")
		u := l.Ceil(at)
		if l.Millis(u) < at {
			t.Fatalf("unit %d starts at %d, before %d", u, l.Millis(u), at)
		}
		if u > 0 && l.Millis(u-1) >= at {
			t.Fatalf("unit %d already starts at %d, not before %d", u-1, l.Millis(u-1), at)
		}
		if l.Ceil(l.Millis(u)) != u {
			t.Fatalf("Ceil(Millis(%d)) = %d", u, l.Ceil(l.Millis(u)))
		}
		if f, err := l.Floor(at); err == nil && (l.Millis(f) > at || l.Millis(f+1) <= at) {
			t.Fatalf("unit %d is [%d, %d), without %d", f, l.Millis(f), l.Millis(f+1), at)
		} else if err != nil && at != l.End().UnixMilli() {
			t.Fatal(err)
		}
	})
}

// TestMillisOutside: units outside the layout do not overflow.
func TestMillisOutside(t *testing.T) {
	l := snowflake.Layout{Epoch: 1 << 43, Unit: time.Second, TimeBits: 43, SequenceBits: 19}
	for _, c := range []struct{ unit, want int64 }{
		{-1, 1 << 43},
		{math.MinInt64, 1 << 43},
		{1<<43 - 1, 1<<43 + (1<<43-1)*1000},
		{1 << 43, 1<<43 + (1<<43-1)*1000},
		{math.MaxInt64, 1<<43 + (1<<43-1)*1000},
	} {
		if got := l.Millis(c.unit); got != c.want {
			t.Errorf("Millis(%d) = %d, want %d", c.unit, got, c.want)
		}
	}
}

// TestIDs: the range of a time interval holds exactly the IDs whose unit overlaps it.
func TestIDs(t *testing.T) {
	leaf, sec := snowflake.Leaf(), snowflake.Seconds()
	at := func(ms int64, ns time.Duration) time.Time { return time.UnixMilli(snowflake.LeafEpoch + ms).Add(ns) }
	for _, c := range []struct {
		name     string
		layout   snowflake.Layout
		from, to time.Time
		lo, hi   int64 // in units
	}{
		{"one unit", leaf, at(5, 0), at(6, 0), 5, 6},
		{"part of a unit", leaf, at(5, 1), at(5, 2), 5, 6},
		{"an end within a unit", leaf, at(5, 0), at(6, 1), 5, 7},
		{"seconds within one", sec, at(5200, 0), at(5300, 0), 5, 6},
		{"seconds over two", sec, at(5999, 0), at(6001, 0), 5, 7},
		{"seconds, whole", sec, at(5000, 0), at(6000, 0), 5, 6},
		{"from before the epoch", leaf, at(-100, 0), at(2, 0), 0, 2},
		{"all before the epoch", leaf, at(-100, 0), at(-50, 0), 0, 0},
		{"from the year 1", leaf, time.Time{}, at(1, 0), 0, 1},
		{"empty", leaf, at(5, 0), at(5, 0), 0, 0},
		{"inverted", leaf, at(6, 0), at(5, 0), 0, 0},
		{"past the end", leaf, at(5, 0), leaf.End().AddDate(10, 0, 0), 5, 1<<41 - 1},
		{"all past the end", leaf, leaf.End().AddDate(1, 0, 0), leaf.End().AddDate(2, 0, 0), 1<<41 - 1, 1<<41 - 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			shift := c.layout.Bits() - c.layout.TimeBits
			got := c.layout.IDs(c.from, c.to)
			if got.Lo != c.lo<<shift || got.Hi != c.hi<<shift {
				t.Errorf("units [%d, %d), want [%d, %d)", got.Lo>>shift, got.Hi>>shift, c.lo, c.hi)
			}
			if got.Len() != (c.hi-c.lo)<<shift {
				t.Errorf("length %d", got.Len())
			}
		})
	}
	if n := (snowflake.Range{Lo: 2, Hi: 1}).Len(); n != 0 {
		t.Errorf("inverted range has length %d", n)
	}
}
