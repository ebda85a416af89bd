package segment_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leaf-idgen/leaf/segment"
)

// TestHungCallsAtClose: a load of one tag and the reading of all tags hang. The other tags
// still return their unused IDs, and ctx bounds Close.
func TestHungCallsAtClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStore(row(100), segment.Row{Tag: "other", MaxID: 1, Step: 1000})
		a := node(t, s, nil, segment.Config{LoadTimeout: time.Minute, SyncInterval: time.Second})
		next(t, a, "other")
		hang := func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }
		s.set(func(s *store) {
			s.onRows = hang
			s.onReserve = func(ctx context.Context, _ segment.Request, _ func() (segment.Reservation, error)) (segment.Reservation, error) {
				return segment.Reservation{}, hang(ctx)
			}
		})
		go func() { _, _ = a.Next(t.Context(), "order") }()
		time.Sleep(2 * time.Second)
		ctx, cancel := context.WithTimeout(t.Context(), 4*time.Second)
		defer cancel()
		start := time.Now()
		wantErr(t, a.Close(ctx), context.DeadlineExceeded)
		if d := time.Since(start); d > 4*time.Second {
			t.Errorf("Close took %v, its context allows 4 s", d)
		}
		if got := s.maxID(t, "other"); got != 2 {
			t.Errorf("max_id of the other tag = %d after the stop, want 2", got)
		}
		<-ctx.Done() // the abandoned load ends with the bubble
	})
}

// TestHungSyncDoesNotHoldUpClose: Close does not wait for the reading of all tags.
func TestHungSyncDoesNotHoldUpClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStore(row(100))
		a := node(t, s, nil, segment.Config{SyncInterval: time.Second})
		next(t, a, "order")
		s.set(func(s *store) {
			s.onRows = func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }
		})
		time.Sleep(2 * time.Second)
		start := time.Now()
		closeNode(t, a)
		if d := time.Since(start); d > 0 {
			t.Errorf("Close took %v", d)
		}
		if got := s.maxID(t, "order"); got != 2 {
			t.Errorf("max_id = %d after the stop, want 2", got)
		}
	})
}

// TestHungReturnIsBounded: the return of unused IDs hangs, and ctx bounds Close.
func TestHungReturnIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStore(row(100))
		a := node(t, s, nil, segment.Config{LoadTimeout: time.Minute})
		next(t, a, "order")
		s.set(func(s *store) {
			s.onReturn = func(ctx context.Context, _ string, _ func() error) error { <-ctx.Done(); return ctx.Err() }
		})
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		defer cancel()
		start := time.Now()
		_ = a.Close(ctx)
		if d := time.Since(start); d > 2*time.Second {
			t.Errorf("Close took %v, its context allows 2 s", d)
		}
		time.Sleep(time.Second) // the call ends in its grace
	})
}
