package echo_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/leaf-idgen/leaf/internal/test/echo"
)

// TestStarved: what counts is how long the late echoes were late, all together.
func TestStarved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var m echo.Machine
		late := func(d time.Duration) { m.Took(time.Now().Add(-d)) }
		for range 1000 {
			late(100 * time.Millisecond) // not late enough to count
		}
		if m.Starved(time.Second) {
			t.Errorf("%+v: starved without an echo that counts", m)
		}
		late(200 * time.Millisecond)
		late(300 * time.Millisecond)
		if m.Worst != 300*time.Millisecond || m.Lost != 500*time.Millisecond {
			t.Errorf("got %+v, want 300 ms at worst and 500 ms in all", m)
		}
		if m.Starved(100*time.Second) || !m.Starved(99*time.Second) {
			t.Errorf("%+v: the limit is one part in 200", m)
		}
	})
}
