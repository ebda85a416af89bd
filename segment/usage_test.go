package segment_test

import (
	"math"
	"testing"
	"testing/synctest"
	"time"

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
		time.Sleep(3 * time.Minute)
		for _, st := range a.Snapshot() {
			if st.Rate != 0 || !math.IsInf(st.Lasts(), 1) {
				t.Errorf("%s: %g IDs per second after three minutes without use", st.Tag, st.Rate)
			}
		}
	})
}
