package latency_test

import (
	"math"
	"testing"
	"time"

	"github.com/leaf-idgen/leaf/bench/internal/latency"
)

func TestOneDuration(t *testing.T) {
	t.Parallel()
	for v := uint64(0); v < 1<<40; v += 1 + v/100 {
		h := latency.New()
		h.Note(time.Duration(v))
		if got := uint64(h.Quantile(0.5)); got < v || float64(got-v) > float64(v)/32 {
			t.Fatalf("the median of %d alone is %d; want it or at most 1/32 more", v, got)
		}
	}
	h := latency.New()
	h.Note(math.MaxInt64)
	h.Note(-1)
	if h.Quantile(0) != 0 || h.Quantile(1) != math.MaxInt64 || h.Total() != 2 {
		t.Errorf("of the longest duration and a negative one: %v to %v, %d in all", h.Quantile(0), h.Quantile(1), h.Total())
	}
}

func TestQuantiles(t *testing.T) {
	t.Parallel()
	h, other := latency.New(), latency.New()
	for i := range 1000 {
		if i%2 == 0 {
			h.Note(time.Duration(i))
		} else {
			other.Note(time.Duration(i))
		}
	}
	h.Add(other)
	for q, want := range map[float64]float64{0: 0, 0.5: 500, 0.99: 990, 0.999: 999, 1: 999} {
		if got := float64(h.Quantile(q)); got < want || got > want*(1+1.0/32) {
			t.Errorf("Quantile(%v) = %v, want %v and not much more", q, got, want)
		}
	}
	if got := latency.New().Quantile(0.99); got != 0 {
		t.Errorf("of none: %v", got)
	}
}
