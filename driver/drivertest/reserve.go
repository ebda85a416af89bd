package drivertest

import (
	"context"
	"errors"
	"math"
	"testing"
	"time"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/segment"
)

var reserveCases = []testCase{
	{"length follows from the step", reserveLength},
	{"ranges follow each other", reserveSequence},
	{"steps inside and outside the limits", reserveSteps},
	{"max_id at the edges", reserveEdges},
	{"unknown tag", reserveUnknown},
	{"bad request", reserveBadRequest},
	{"context already done", reserveDone},
	{"a lowered row is returned as it is", reserveLowered},
	{"update_time is set", reserveTime},
}

func reserveLength(t *testing.T, b Backend) {
	for _, c := range []struct {
		name string
		step int64 // of the row
		req  segment.Request
		want int64
	}{
		{"step as believed", 2000, segment.Request{Step: 2000, Length: 8000, Min: 1, Max: 10}, 8000},
		{"length below the step", 2000, segment.Request{Step: 2000, Length: 1, Min: 1, Max: 10000}, 1},
		{"longest", 7, segment.Request{Step: 7, Length: segment.MaxStep, Min: 1, Max: 1}, segment.MaxStep},
		{"step unknown", 2000, segment.Request{Min: 1, Max: segment.MaxStep}, 2000},
		{"step edited", 13, segment.Request{Step: 7, Length: 28, Min: 1, Max: segment.MaxStep}, 13},
		{"edited above max", 2000, segment.Request{Step: 7, Length: 28, Min: 1, Max: 100}, 100},
		{"edited below min", 7, segment.Request{Step: 2000, Length: 28, Min: 50, Max: 100}, 50},
		{"unknown above max", 2000, segment.Request{Min: 1, Max: 13}, 13},
		{"unknown below min", 7, segment.Request{Min: 13, Max: 13}, 13},
		{"step one", 1, segment.Request{Step: 1, Length: 1, Min: 1, Max: 1}, 1},
	} {
		put(t, b, c.name, 1, c.step)
		c.req.Tag = c.name
		res, err := b.Store.Reserve(ctx(t), c.req)
		want := segment.Reservation{Range: leaf.Range{Lo: 1, Hi: 1 + c.want}, Step: c.step}
		if err != nil || res != want {
			t.Errorf("%s: Reserve = %v, %v; want %v", c.name, res, err, want)
		}
		if got := maxID(t, b.Store, c.name); got != want.Range.Hi {
			t.Errorf("%s: max_id = %d, want %d", c.name, got, want.Range.Hi)
		}
	}
}

func reserveSequence(t *testing.T, b Backend) {
	put(t, b, "a", 0, 7)
	put(t, b, "b", 1000, 13)
	next := map[string]int64{"a": 0, "b": 1000}
	for i, length := range []int64{7, 1, 7, 14, 28, 5, 1000} {
		for tag, step := range map[string]int64{"a": 7, "b": 13} {
			req := request(tag, step, length)
			if i%3 == 2 {
				req.Step, length = 0, step
			}
			res, err := b.Store.Reserve(ctx(t), req)
			want := leaf.Range{Lo: next[tag], Hi: next[tag] + length}
			if err != nil || res.Range != want {
				t.Fatalf("Reserve(%+v) = %v, %v; want %v", req, res, err, want)
			}
			next[tag] = want.Hi
		}
	}
}

func reserveSteps(t *testing.T, b Backend) {
	for _, c := range []struct {
		name  string
		step  int64
		valid bool
	}{
		{"-100", -100, false},
		{"0", 0, false},
		{"1", 1, true},
		{"5,000,000", 5_000_000, true},
		{"2^30", 1 << 30, true},
		{"2^30+1", 1<<30 + 1, false},
		{"2^31-1", math.MaxInt32, false},
		{"-2^31", math.MinInt32, false},
	} {
		put(t, b, c.name, 100, c.step)
		for _, believed := range []int64{0, 1, c.step, 2000} {
			req := request(c.name, believed, 1)
			if req.Validate() != nil {
				continue // the engine cannot believe in such a step
			}
			before := maxID(t, b.Store, c.name)
			res, err := b.Store.Reserve(ctx(t), req)
			after := maxID(t, b.Store, c.name)
			switch {
			case c.valid && (err != nil || res.Step != c.step || after != before+res.Range.Len() || res.Range.Hi != after):
				t.Errorf("step %s believed %d: Reserve = %v, %v, max_id %d to %d", c.name, believed, res, err, before, after)
			case !c.valid && !errors.Is(err, leaf.ErrInvalidRow):
				t.Errorf("step %s believed %d: Reserve = %v, %v; want ErrInvalidRow", c.name, believed, res, err)
			case !c.valid && (after != before || res != segment.Reservation{}):
				t.Errorf("step %s believed %d: refused, but max_id went from %d to %d, and Reserve returned %v", c.name, believed, before, after, res)
			}
		}
	}
}

func reserveEdges(t *testing.T, b Backend) {
	for _, c := range []struct {
		name  string
		maxID int64
		want  error
	}{
		{"zero", 0, nil},
		{"fits exactly", segment.MaxMaxID - 7, nil},
		{"one too many", segment.MaxMaxID - 6, leaf.ErrOverflow},
		{"at the limit", segment.MaxMaxID, leaf.ErrOverflow},
		{"past the limit", segment.MaxMaxID + 1, leaf.ErrOverflow},
		{"largest int64", math.MaxInt64, leaf.ErrOverflow},
		{"minus one", -1, leaf.ErrInvalidRow},
		{"smallest int64", math.MinInt64, leaf.ErrInvalidRow},
	} {
		for _, believed := range []int64{0, 7} {
			put(t, b, c.name, c.maxID, 7)
			res, err := b.Store.Reserve(ctx(t), request(c.name, believed, 7))
			after := maxID(t, b.Store, c.name)
			switch {
			case c.want == nil && (err != nil || res.Range != leaf.Range{Lo: c.maxID, Hi: c.maxID + 7} || after != c.maxID+7):
				t.Errorf("%s believed %d: Reserve = %v, %v, max_id %d", c.name, believed, res, err, after)
			case c.want != nil && (!errors.Is(err, c.want) || after != c.maxID || res != segment.Reservation{}):
				t.Errorf("%s believed %d: Reserve = %v, %v, max_id %d; want %v and no change", c.name, believed, res, err, after, c.want)
			}
		}
	}
}

func reserveUnknown(t *testing.T, b Backend) {
	put(t, b, "order", 5, 7)
	for _, tag := range []string{"order.pay", "orde", "x"} {
		for _, believed := range []int64{0, 7} {
			if res, err := b.Store.Reserve(ctx(t), request(tag, believed, 7)); !errors.Is(err, leaf.ErrUnknownTag) {
				t.Errorf("Reserve(%q) = %v, %v; want ErrUnknownTag", tag, res, err)
			}
		}
	}
	if got := maxID(t, b.Store, "order"); got != 5 {
		t.Errorf("max_id of another tag went to %d", got)
	}
}

func reserveBadRequest(t *testing.T, b Backend) {
	put(t, b, "a", 5, 7)
	for _, req := range []segment.Request{
		{},
		{Tag: "a"},
		{Tag: "a", Step: -1, Length: 1, Min: 1, Max: 1},
		{Tag: "a", Step: 7, Length: 0, Min: 1, Max: 1},
		{Tag: "a", Step: 7, Length: segment.MaxStep + 1, Min: 1, Max: 1},
		{Tag: "a", Min: 2, Max: 1},
		{Tag: "a\x00", Min: 1, Max: 1},
		{Tag: "a\xff", Min: 1, Max: 1},
	} {
		if _, err := b.Store.Reserve(ctx(t), req); !errors.Is(err, leaf.ErrBadRequest) {
			t.Errorf("Reserve(%+v): %v; want ErrBadRequest", req, err)
		}
	}
	if got := maxID(t, b.Store, "a"); got != 5 {
		t.Errorf("max_id went to %d", got)
	}
}

func reserveDone(t *testing.T, b Backend) {
	put(t, b, "a", 5, 7)
	canceled, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := b.Store.Reserve(canceled, request("a", 7, 7)); !errors.Is(err, context.Canceled) {
		t.Errorf("Reserve with a cancelled context: %v; want context.Canceled", err)
	}
	if got := maxID(t, b.Store, "a"); got != 5 {
		t.Errorf("max_id went to %d", got)
	}
}

// reserveLowered: noticing a regress is the engine's work; a store must show it.
func reserveLowered(t *testing.T, b Backend) {
	for _, believed := range []int64{0, 7} {
		put(t, b, "a", 1000, 7)
		if _, err := b.Store.Reserve(ctx(t), request("a", believed, 7)); err != nil {
			t.Fatal(err)
		}
		put(t, b, "a", 500, 7)
		res, err := b.Store.Reserve(ctx(t), request("a", believed, 7))
		if want := (leaf.Range{Lo: 500, Hi: 507}); err != nil || res.Range != want {
			t.Errorf("Reserve after a lowering = %v, %v; want %v", res, err, want)
		}
	}
}

func reserveTime(t *testing.T, b Backend) {
	old := time.Now().Add(-24 * time.Hour)
	for name, write := range map[string]func(tag string) error{
		"reserve": func(tag string) error { _, err := b.Store.Reserve(ctx(t), request(tag, 7, 7)); return err },
		"first":   func(tag string) error { _, err := b.Store.Reserve(ctx(t), request(tag, 0, 0)); return err },
		"give":    func(tag string) error { return b.Store.ReturnUnused(ctx(t), tag, 5, 4) },
		"raise":   func(tag string) error { _, err := b.Store.Raise(ctx(t), tag, 9); return err },
		"update":  func(tag string) error { return b.Store.Update(ctx(t), tag, segment.Change{Step: new(int64(9))}) },
	} {
		b.Put(t, segment.Row{Tag: name, MaxID: 5, Step: 7, UpdateTime: old})
		if row, err := b.Store.Lookup(ctx(t), name); err != nil || row.UpdateTime.Sub(old).Abs() > slack {
			t.Errorf("%s: Lookup before = %v, %v; want update_time %v", name, row, err, old)
		}
		if err := write(name); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		row, err := b.Store.Lookup(ctx(t), name)
		if err != nil || time.Since(row.UpdateTime).Abs() > longest {
			t.Errorf("%s: Lookup = %v, %v; want update_time now", name, row, err)
		}
	}
}
