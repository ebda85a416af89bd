package segment_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/leaf-idgen/leaf/segment"
)

// TestRecentFades: preloading a tag does not count as use.
func TestRecentFades(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, d := newStore(row(100)), newDisk()
		withoutBoard := struct{ segment.Store }{s} // at which a node looks every few seconds
		a := node(t, withoutBoard, d, segment.Config{})
		next(t, a, "order")
		for range 3 {
			time.Sleep(20 * time.Hour)
			closeNode(t, a)
			a = node(t, withoutBoard, d, segment.Config{})
			synctest.Wait()
		}
		before := s.count()
		closeNode(t, a)
		_ = node(t, withoutBoard, d, segment.Config{})
		synctest.Wait()
		if n := s.count() - before; n != 0 {
			t.Errorf("%d ranges loaded for a tag that was last used 60 h ago", n)
		}
	})
}

// TestRecentSurvivesAStoreThatIsDown: a run that never reached its store keeps the
// list of the run before.
func TestRecentSurvivesAStoreThatIsDown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, d := newStore(row(100)), newDisk()
		a := node(t, s, d, segment.Config{})
		next(t, a, "order")
		closeNode(t, a)
		s.breakDown()
		a = node(t, s, d, segment.Config{})
		time.Sleep(time.Minute)
		closeNode(t, a)
		s.heal()
		before := s.count()
		_ = node(t, s, d, segment.Config{})
		synctest.Wait()
		if n := s.count() - before; n != 1 {
			t.Errorf("%d ranges loaded at start, want the one of the recent tag", n)
		}
	})
}
