package drivertest

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/segment"
)

var lockCases = []testCase{
	{"a locked row ends at its deadline, others go on", lockedRow},
	{"a locked row is served when it is free", lockedThenFree},
}

// slack is how late a call may return after its deadline on a busy machine.
const slack = 2 * time.Second

func lockedRow(t *testing.T, b Backend) {
	if b.Lock == nil {
		t.Skip("this store has no locks")
	}
	put(t, b, "locked", 100, 7)
	put(t, b, "free", 100, 7)
	unlock := b.Lock(t, "locked")
	for name, call := range map[string]func(context.Context) error{
		"Reserve": func(c context.Context) error {
			_, err := b.Store.Reserve(c, request("locked", 7, 7))
			return err
		},
		"Reserve with step unknown": func(c context.Context) error {
			_, err := b.Store.Reserve(c, request("locked", 0, 0))
			return err
		},
		"Raise": func(c context.Context) error { _, err := b.Store.Raise(c, "locked", 500); return err },
		"Update": func(c context.Context) error {
			return b.Store.Update(c, "locked", segment.Change{Step: new(int64(7))})
		},
	} {
		short, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
		start := time.Now()
		done := make(chan error, 1)
		go func() { done <- call(short) }()
		if !b.LocksAll {
			if _, err := b.Store.Reserve(ctx(t), request("free", 7, 7)); err != nil {
				t.Errorf("%s: Reserve of another row: %v", name, err)
			}
		}
		err := <-done
		cancel()
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%s of a locked row: %v; want DeadlineExceeded", name, err)
		}
		if late := time.Since(start) - 200*time.Millisecond; late > slack {
			t.Errorf("%s returned %v after its deadline", name, late)
		}
	}
	if row, err := b.Store.Lookup(ctx(t), "locked"); err != nil || row.MaxID != 100 {
		t.Errorf("Lookup of a locked row = %v, %v; reading needs no lock", row, err)
	}
	unlock()
	// What was given up may still be carried out, or not; nothing may be repeated.
	first, err := b.Store.Reserve(ctx(t), request("locked", 7, 7))
	if err != nil || first.Range.Lo < 100 {
		t.Fatalf("Reserve after the lock = %v, %v", first, err)
	}
	second, err := b.Store.Reserve(ctx(t), request("locked", 7, 7))
	if err != nil || second.Range.Lo < first.Range.Hi {
		t.Errorf("Reserve after %v = %v, %v", first, second, err)
	}
}

func lockedThenFree(t *testing.T, b Backend) {
	if b.Lock == nil {
		t.Skip("this store has no locks")
	}
	put(t, b, "locked", 100, 7)
	unlock := b.Lock(t, "locked")
	done := make(chan error, 2)
	var ranges [2]leaf.Range
	for i, believed := range []int64{0, 7} {
		go func() {
			res, err := b.Store.Reserve(ctx(t), request("locked", believed, 7))
			ranges[i] = res.Range
			done <- err
		}()
	}
	select {
	case err := <-done:
		t.Errorf("Reserve of a locked row returned %v", err)
		done <- err
	case <-time.After(100 * time.Millisecond):
	}
	unlock()
	for range ranges {
		if err := <-done; err != nil {
			t.Errorf("Reserve after the lock: %v", err)
		}
	}
	if end := covered(t, ranges[:], 100); end != 114 {
		t.Errorf("two ranges of 7 from 100 end at %d", end)
	}
}
