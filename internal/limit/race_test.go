package limit_test

import (
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/internal/limit"
)

// TestLimitsAreStrict: many clients at once, while rules are set again and again, get
// exactly what the quota allows, and no more than the rate allows.
func TestLimitsAreStrict(t *testing.T) {
	t.Parallel()
	const quota, rate = 20_000, 5_000
	inner := new(sharedCounter)
	g := newGate(t, limit.Config{}, inner, inner)
	rules := func(other int64) limit.Rules {
		return limit.Rules{Tags: map[string]limit.Rule{"quota": {Quota: quota}, "rate": {Rate: rate}, "other": {Rate: other}}}
	}
	g.Set(rules(1))
	begin := time.Now()
	var clients sync.WaitGroup
	var byQuota, byRate atomic.Int64
	done := make(chan struct{})
	for c := range 8 {
		clients.Go(func() {
			i := open(t, g, leaf.Credentials{Name: string(rune('a' + c))}).Segment
			for k := range 5000 {
				n := 1 + (k+c)%7
				for tag, sum := range map[string]*atomic.Int64{"quota": &byQuota, "rate": &byRate} {
					switch _, err := i.NextN(t.Context(), tag, n); {
					case err == nil:
						sum.Add(int64(n))
					case !errors.Is(err, leaf.ErrThrottled):
						t.Error(err)
					}
				}
			}
			for range quota { // single IDs fill what batches left
				if _, err := i.Next(t.Context(), "quota"); err == nil {
					byQuota.Add(1)
				} else {
					break
				}
			}
		})
	}
	var setter sync.WaitGroup
	setter.Go(func() {
		for k := int64(1); ; k++ {
			select {
			case <-done:
				return
			default:
				g.Set(rules(k % 10))
				_, _ = g.Rules(), g.Status()
			}
		}
	})
	clients.Wait()
	most := int64(float64(rate) * (1 + time.Since(begin).Seconds()))
	close(done)
	setter.Wait()
	if got := byQuota.Load(); got != quota {
		t.Errorf("%d IDs under a quota of %d", got, quota)
	}
	if got := byRate.Load(); got > most || got < rate {
		t.Errorf("%d IDs under a rate of %d/s; want %d to %d", got, rate, rate, most)
	}
}
