package segment_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/leaf-idgen/leaf/segment"
)

// TestStocked: the question loads a range for a tag without one, also after the database was away, and one range only.
func TestStocked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStore(row(10))
		a := node(t, s, nil, segment.Config{})
		s.breakDown()
		for range 100 {
			if a.Stocked("order") {
				t.Fatal("IDs are in memory while the database is away")
			}
			time.Sleep(50 * time.Millisecond)
		}
		if n := s.count(); n < 5 || n > 40 {
			t.Errorf("100 questions in 5 s made %d loads", n)
		}
		s.heal()
		time.Sleep(time.Second) // longer than the back-off
		a.Stocked("order")
		synctest.Wait()
		loads := s.count()
		for range 10 {
			if !a.Stocked("order") {
				t.Fatal("no ID is in memory after the load")
			}
			synctest.Wait()
		}
		if got := s.maxID(t, "order"); got != 11 || s.count() != loads {
			t.Errorf("max_id is %d after %d more loads, want 11 after none", got, s.count()-loads)
		}
		if id, err := a.Next(t.Context(), "order"); id != 1 || err != nil {
			t.Errorf("Next is %d, %v", id, err)
		}
		if a.Stocked("other") {
			t.Error("IDs of an unknown tag are in memory")
		}
		closeNode(t, a)
	})
}
