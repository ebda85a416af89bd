package proxy_test

import (
	"errors"
	"net"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

func TestRetarget(t *testing.T) {
	t.Parallel()
	p, heardBefore := start(t)
	other, heardAfter := start(t)
	old := dial(t, p)
	say(t, old, "before")
	p.Retarget(other.Addr())
	say(t, dial(t, p), "after")
	if !heardAfter.has("after") || heardBefore.has("after") {
		t.Error("a connection made after Retarget went to the old target")
	}
	say(t, old, "still open")
	if !heardBefore.has("still open") {
		t.Error("an open connection has left its target")
	}
}

func TestJitter(t *testing.T) {
	t.Parallel()
	p, _ := start(t)
	const most = 40 * time.Millisecond
	c := dial(t, p)
	say(t, c, "x")
	p.Jitter(most)
	var took []time.Duration
	for range 8 {
		begin := time.Now()
		say(t, c, "there and back")
		took = append(took, time.Since(begin))
	}
	if spread := slices.Max(took) - slices.Min(took); spread < most/8 {
		t.Errorf("round trips took %v: want them to differ", took)
	}
	p.Jitter(time.Hour)
	mustWrite(t, c, "held\n") // Close must not wait for it
}

func TestLimit(t *testing.T) {
	t.Parallel()
	p, _ := start(t)
	c := dial(t, p)
	say(t, c, "x")
	p.Limit(50_000)
	line := strings.Repeat("x", 4999) // and its end
	begin := time.Now()
	say(t, c, line)
	if took := time.Since(begin); took < 200*time.Millisecond {
		t.Errorf("5,000 bytes there and back took %v at 50,000 bytes per second", took)
	}
	p.Limit(0)
	begin = time.Now()
	say(t, c, strings.Repeat(line, 50))
	if took := time.Since(begin); took > 5*time.Second {
		t.Errorf("250,000 bytes there and back took %v without a limit", took)
	}
}

// TestCutAtRandom counts how many round trips each of many connections lives.
func TestCutAtRandom(t *testing.T) {
	t.Parallel()
	lives := func(seed uint64) (trips []int) {
		p, _ := start(t)
		p.Seed(seed)
		p.CutAtRandom(0.2)
		for range 20 {
			trips = append(trips, tripsUntilCut(t, dial(t, p)))
		}
		p.CutAtRandom(0)
		say(t, dial(t, p), "a quiet network again")
		return trips
	}
	first := lives(1)
	if slices.Max(first) == 0 || slices.Min(first) == slices.Max(first) {
		t.Errorf("connections lived %v round trips: want them to differ", first)
	}
	if again := lives(1); !slices.Equal(first, again) {
		t.Errorf("the same seed gave %v and then %v", first, again)
	}
	if other := lives(2); slices.Equal(first, other) {
		t.Errorf("seeds 1 and 2 both gave %v", first)
	}
}

func tripsUntilCut(t *testing.T, c net.Conn) (trips int) {
	t.Helper()
	for {
		if _, err := c.Write([]byte("x\n")); err != nil {
			t.Fatalf("write: %v", err)
		}
		if _, err := c.Read(make([]byte, 2)); errors.Is(err, syscall.ECONNRESET) {
			return trips
		} else if err != nil {
			t.Fatalf("read: %v, want a reset", err)
		}
		trips++
	}
}
