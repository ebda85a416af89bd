package limit_test

import (
	"errors"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/internal/limit"
)

// TestRateHoldsAtEveryRate offers twice the rate for 10 s. What comes through is the
// rate for each second and one second's worth at the start, never more.
func TestRateHoldsAtEveryRate(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		rate int64
		n    int // IDs per request
	}{
		{1, 1}, {3, 1}, {3, 2}, {7, 7}, {1000, 1}, {1000, 13}, {999_983, 997}, {10_000_000, leaf.MaxBatch}, {limit.MaxRate, leaf.MaxBatch},
	} {
		bubble(t, func(t *testing.T) {
			e := new(engine)
			g := newGate(t, limit.Config{}, e, e)
			g.Set(tags("a", limit.Rule{Rate: c.rate}))
			i := open(t, g, leaf.Credentials{}).Segment
			const steps, seconds = 200, 10
			perStep := min(max(1, int(2*c.rate*seconds/int64(c.n)/steps)), 150)
			for range steps {
				for range perStep {
					_, err := i.NextN(t.Context(), "a", c.n)
					if err != nil && !errors.Is(err, leaf.ErrThrottled) {
						t.Fatal(err)
					}
				}
				time.Sleep(seconds * time.Second / steps)
			}
			most := c.rate * (seconds + 1)
			offered := int64(steps * perStep * c.n)
			least := min(most-c.rate/steps*seconds-int64(2*c.n), offered)
			if got := int64(e.ids); got > most || got < least {
				t.Errorf("rate %d in batches of %d: %d IDs in %d s; want %d to %d", c.rate, c.n, got, seconds, least, most)
			}
		})
	}
}

// TestRetryAfterIsTrue: a retry after the hint succeeds if nobody else came, and one
// that is 2 ms earlier does not.
func TestRetryAfterIsTrue(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(1, 2))
	for range 300 {
		rate := int64(1) << random.IntN(16)
		rate += random.Int64N(rate)
		rule := limit.Rule{Rate: rate}
		if random.IntN(4) == 0 {
			rule = limit.Rule{Quota: rate}
		}
		bubble(t, func(t *testing.T) {
			e := new(engine)
			g := newGate(t, limit.Config{}, e, e)
			g.Set(tags("a", rule))
			i := open(t, g, leaf.Credentials{}).Segment
			refused := 0
			for refused < 5 {
				n := 1 + random.IntN(int(min(rate, leaf.MaxBatch)))
				_, err := i.NextN(t.Context(), "a", n)
				if err == nil {
					time.Sleep(time.Duration(random.Int64N(int64(300 * time.Millisecond))))
					continue
				}
				refused++
				after := leaf.RetryAfter(err)
				if !errors.Is(err, leaf.ErrThrottled) || after < time.Millisecond || after%time.Millisecond != 0 {
					t.Fatalf("%+v: %v, retry after %v", rule, err, after)
				}
				if early := after - 2*time.Millisecond; early > 0 {
					time.Sleep(early)
					if _, err := i.NextN(t.Context(), "a", n); err == nil {
						t.Fatalf("%+v: %d IDs are there %v before the hint of %v", rule, n, after-early, after)
					}
					time.Sleep(after - early)
				} else {
					time.Sleep(after)
				}
				if _, err := i.NextN(t.Context(), "a", n); err != nil {
					t.Fatalf("%+v: %d IDs are not there after %v: %v", rule, n, after, err)
				}
			}
		})
	}
}

// TestLargeBatch: one that is larger than a second's rate needs a full bucket, and is
// paid off by what follows; one that could never be served says so.
func TestLargeBatch(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T) {
		e := new(engine)
		g := newGate(t, limit.Config{}, e, e)
		g.Set(limit.Rules{Tags: map[string]limit.Rule{"a": {Rate: 10}, "b": {Quota: 10}}})
		i := open(t, g, leaf.Credentials{}).Segment
		if _, err := i.NextN(t.Context(), "a", 50); err != nil {
			t.Errorf("5 seconds' worth from a full bucket: %v", err)
		}
		_, err := i.Next(t.Context(), "a")
		if after := leaf.RetryAfter(err); after != 4100*time.Millisecond {
			t.Errorf("the next ID: %v, retry after %v; want 4.1s: 50 and 1 at 10 a second, less one second's worth", err, after)
		}
		_, err = i.NextN(t.Context(), "a", 50)
		if after := leaf.RetryAfter(err); after != 5*time.Second {
			t.Errorf("the next batch: %v, retry after %v; want 5s, when the first is paid off", err, after)
		}
		time.Sleep(5 * time.Second)
		if _, err := i.NextN(t.Context(), "a", 50); err != nil {
			t.Errorf("the next batch after the hint: %v", err)
		}
		for tag, n := range map[string]int{"a": 601, "b": 11} {
			_, err := i.NextN(t.Context(), tag, n)
			if !errors.Is(err, leaf.ErrBadRequest) || !strings.Contains(err.Error(), `the limit of tag "`+tag+`" is 10 IDs per`) {
				t.Errorf("NextN(%q, %d): %v; want ErrBadRequest that names the limit", tag, n, err)
			}
		}
		time.Sleep(time.Minute)
		for tag, n := range map[string]int{"a": 600, "b": 10} {
			if _, err := i.NextN(t.Context(), tag, n); err != nil {
				t.Errorf("NextN(%q, %d): %v; want the largest batch", tag, n, err)
			}
		}
	})
}

func TestQuotaIsOfADay(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T) { // noon
		e := new(engine)
		g := newGate(t, limit.Config{}, e, e)
		g.Set(tags("a", limit.Rule{Quota: 100}))
		i := open(t, g, leaf.Credentials{}).Segment
		for d := range 3 {
			if _, err := i.NextN(t.Context(), "a", 60); err != nil {
				t.Errorf("day %d: %v", d, err)
			}
			_, err := i.NextN(t.Context(), "a", 41)
			if want := 12*time.Hour + time.Duration(min(d, 1))*12*time.Hour; leaf.RetryAfter(err) != want {
				t.Errorf("day %d: %v; want a hint of %v, midnight of UTC", d, err, want)
			}
			if _, err := i.NextN(t.Context(), "a", 40); err != nil {
				t.Errorf("day %d, the rest: %v", d, err)
			}
			if got := g.Rules()[0].Used; got != 100 {
				t.Errorf("day %d: used %d, want 100", d, got)
			}
			time.Sleep(leaf.RetryAfter(err))
			if got := g.Rules()[0].Used; got != 0 {
				t.Errorf("after day %d: used %d, want 0", d, got)
			}
		}
	})
}

// TestCountsSurviveNewRules as far as their limits stay.
func TestCountsSurviveNewRules(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		next limit.Rule
		want int // IDs that can be taken after 10 of {Rate: 10, Quota: 15}
	}{
		{"the same", limit.Rule{Rate: 10, Quota: 15}, 0},
		{"another quota", limit.Rule{Rate: 10, Quota: 20}, 0},
		{"another rate", limit.Rule{Rate: 12, Quota: 15}, 5},
		{"only the quota, raised", limit.Rule{Quota: 22}, 12},
		{"only the quota, lowered", limit.Rule{Quota: 8}, 0},
		{"only the rate", limit.Rule{Rate: 10}, 0},
		{"numbers out of range", limit.Rule{Rate: -1, Quota: limit.MaxRate + 1}, 100},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			bubble(t, func(t *testing.T) {
				e := new(engine)
				g := newGate(t, limit.Config{}, e, e)
				g.Set(tags("a", limit.Rule{Rate: 10, Quota: 15}))
				i := open(t, g, leaf.Credentials{}).Segment
				if _, err := i.NextN(t.Context(), "a", 10); err != nil {
					t.Fatal(err)
				}
				g.Set(limit.Rules{Tags: map[string]limit.Rule{"a": c.next, "b": {Rate: 1}}})
				got := 0
				for range 100 {
					if _, err := i.Next(t.Context(), "a"); err == nil {
						got++
					}
				}
				if got != c.want {
					t.Errorf("%d more IDs, want %d", got, c.want)
				}
			})
		})
	}
}

// TestQuotaSetAgain: what was counted today counts again when a quota comes back, however
// it went: by a command, or by a reading that found no rules.
func TestQuotaSetAgain(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name    string
		between []limit.Rules
	}{
		{"removed", []limit.Rules{{}}},
		{"removed for several readings", []limit.Rules{{}, {}, {}}},
		{"only the rate stays", []limit.Rules{tags("a", limit.Rule{Rate: 1000}), {}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			bubble(t, func(t *testing.T) { // noon
				e := new(engine)
				g := newGate(t, limit.Config{}, e, e)
				both := limit.Rules{
					Tags:    map[string]limit.Rule{"a": {Quota: 100}},
					Clients: map[string]limit.Rule{"shop": {Quota: 500}},
				}
				g.Set(both)
				i := open(t, g, leaf.Credentials{Name: "shop"}).Segment
				if _, err := i.NextN(t.Context(), "a", 60); err != nil {
					t.Fatal(err)
				}
				for _, r := range c.between {
					g.Set(r)
					if _, err := i.NextN(t.Context(), "a", 10); err != nil { // not counted
						t.Fatal(err)
					}
				}
				g.Set(both)
				for _, r := range g.Rules() {
					if r.Used != 60 {
						t.Errorf("%q: used %d after the quota was set again, want 60", r.Name, r.Used)
					}
				}
				if _, err := i.NextN(t.Context(), "a", 41); !errors.Is(err, leaf.ErrThrottled) {
					t.Errorf("41 of the 40 that are left: %v, want ErrThrottled", err)
				}
				g.Set(limit.Rules{})
				time.Sleep(12 * time.Hour)
				g.Set(both)
				if _, err := i.NextN(t.Context(), "a", 100); err != nil {
					t.Errorf("the next day: %v", err)
				}
			})
		})
	}
}
