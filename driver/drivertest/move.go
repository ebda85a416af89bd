package drivertest

import (
	"errors"
	"math"
	"sync"
	"testing"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/segment"
)

var returnCases = []testCase{
	{"lowers the row if it is at hi", returnUnused},
	{"leaves the row alone otherwise", returnConflict},
	{"one of many wins", returnRace},
	{"bad request", returnBad},
}

func returnUnused(t *testing.T, b Backend) {
	put(t, b, "a", 1, 13)
	res, err := b.Store.Reserve(ctx(t), request("a", 13, 13))
	if err != nil {
		t.Fatal(err)
	}
	if err := b.Store.ReturnUnused(ctx(t), "a", res.Range.Hi, 8); err != nil {
		t.Fatalf("ReturnUnused: %v", err)
	}
	res, err = b.Store.Reserve(ctx(t), request("a", 13, 13))
	if want := (leaf.Range{Lo: 8, Hi: 21}); err != nil || res.Range != want {
		t.Errorf("Reserve after ReturnUnused = %v, %v; want %v", res, err, want)
	}
	if err := b.Store.ReturnUnused(ctx(t), "a", 21, 0); err != nil {
		t.Errorf("ReturnUnused down to 0: %v", err)
	}
}

func returnConflict(t *testing.T, b Backend) {
	put(t, b, "a", 100, 13)
	for _, hi := range []int64{99, 101, 1000} {
		if err := b.Store.ReturnUnused(ctx(t), "a", hi, 50); !errors.Is(err, leaf.ErrConflict) {
			t.Errorf("ReturnUnused from %d: %v; want ErrConflict", hi, err)
		}
	}
	for _, tag := range []string{"b", "aa"} {
		if err := b.Store.ReturnUnused(ctx(t), tag, 100, 50); !errors.Is(err, leaf.ErrUnknownTag) {
			t.Errorf("ReturnUnused(%q): %v; want ErrUnknownTag", tag, err)
		}
	}
	if got := maxID(t, b.Store, "a"); got != 100 {
		t.Errorf("max_id went to %d", got)
	}
}

func returnRace(t *testing.T, b Backend) {
	put(t, b, "a", 100, 13)
	var group sync.WaitGroup
	errs := make([]error, 16)
	for i := range errs {
		group.Go(func() { errs[i] = b.Store.ReturnUnused(ctx(t), "a", 100, int64(50+i)) })
	}
	group.Wait()
	won := -1
	for i, err := range errs {
		switch {
		case err == nil && won >= 0:
			t.Errorf("ReturnUnused succeeded for %d and %d", won, i)
		case err == nil:
			won = i
		case !errors.Is(err, leaf.ErrConflict):
			t.Errorf("ReturnUnused %d: %v; want ErrConflict", i, err)
		}
	}
	if got := maxID(t, b.Store, "a"); got != int64(50+won) {
		t.Errorf("max_id = %d after ReturnUnused to %d", got, 50+won)
	}
}

func returnBad(t *testing.T, b Backend) {
	put(t, b, "a", 100, 13)
	for _, c := range []struct{ hi, lo int64 }{{100, 100}, {100, 101}, {100, -1}, {math.MaxInt64, 100}} {
		if err := b.Store.ReturnUnused(ctx(t), "a", c.hi, c.lo); !errors.Is(err, leaf.ErrBadRequest) {
			t.Errorf("ReturnUnused from %d to %d: %v; want ErrBadRequest", c.hi, c.lo, err)
		}
	}
	if err := b.Store.ReturnUnused(ctx(t), "", 100, 50); !errors.Is(err, leaf.ErrBadRequest) {
		t.Errorf("ReturnUnused of no tag: %v; want ErrBadRequest", err)
	}
}

var raiseCases = []testCase{
	{"moves up only", raise},
	{"never lowers under load", raiseUnderLoad},
}

func raise(t *testing.T, b Backend) {
	put(t, b, "a", 100, 13)
	put(t, b, "negative", -100, 13)
	put(t, b, "invalid", 5, -1)
	for _, c := range []struct {
		tag         string
		above, want int64
	}{
		{"a", 50, 100},
		{"a", 100, 100},
		{"a", -5, 100},
		{"a", 101, 101},
		{"a", 101, 101},
		{"a", segment.MaxMaxID, segment.MaxMaxID},
		{"a", 1, segment.MaxMaxID},
		{"negative", 0, 0},
		{"invalid", 7, 7},
	} {
		got, err := b.Store.Raise(ctx(t), c.tag, c.above)
		if err != nil || got != c.want || maxID(t, b.Store, c.tag) != c.want {
			t.Errorf("Raise(%q, %d) = %d, %v; want %d", c.tag, c.above, got, err, c.want)
		}
	}
	for _, above := range []int64{segment.MaxMaxID + 1, math.MaxInt64} {
		if got, err := b.Store.Raise(ctx(t), "a", above); !errors.Is(err, leaf.ErrOverflow) {
			t.Errorf("Raise to %d = %d, %v; want ErrOverflow", above, got, err)
		}
	}
	if got, err := b.Store.Raise(ctx(t), "b", 7); !errors.Is(err, leaf.ErrUnknownTag) {
		t.Errorf("Raise of an unknown tag = %d, %v", got, err)
	}
}

func raiseUnderLoad(t *testing.T, b Backend) {
	put(t, b, "a", 0, 7)
	var group sync.WaitGroup
	for range 4 {
		group.Go(func() {
			for range 10 {
				if _, err := b.Store.Reserve(ctx(t), request("a", 7, 7)); err != nil {
					t.Errorf("Reserve: %v", err)
				}
			}
		})
		group.Go(func() {
			for above := int64(0); above < 280; above += 28 {
				got, err := b.Store.Raise(ctx(t), "a", above)
				if err != nil || got < above {
					t.Errorf("Raise to %d = %d, %v", above, got, err)
				}
			}
		})
	}
	group.Wait()
	if got := maxID(t, b.Store, "a"); got < 4*10*7 {
		t.Errorf("max_id = %d after 40 ranges of 7: a raise lowered it", got)
	}
}
