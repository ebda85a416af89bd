package config_test

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/leaf-idgen/leaf/internal/config"
	"github.com/leaf-idgen/leaf/segment"
)

// TestEngineAgrees: a program that embeds segment mode gets the defaults and limits that
// leaf serve has, which are written down in the tags of Config and in segment.Config.
func TestEngineAgrees(t *testing.T) {
	t.Parallel()
	key, engine := config.Default(), segment.Config{NodeID: "node"}.WithDefaults()
	s := &key.Segment
	for name, pair := range map[string][2]time.Duration{
		"max-wait":      {s.MaxWait, engine.MaxWait},
		"load-timeout":  {s.LoadTimeout, engine.LoadTimeout},
		"sync-interval": {s.SyncInterval, engine.SyncInterval},
		"negative-ttl":  {s.NegativeTTL, engine.NegativeTTL},
	} {
		if pair[0] != pair[1] {
			t.Errorf("%s: the key's default is %v, the engine's %v", name, pair[0], pair[1])
		}
	}
	if int64(engine.MaxLoads) != s.MaxLoads || engine.MaxStep != s.MaxStep {
		t.Errorf("defaults of max-loads %d and %d, of max-step %d and %d", s.MaxLoads, engine.MaxLoads, s.MaxStep, engine.MaxStep)
	}
	for name, f := range map[string]struct {
		values []int64
		set    func(*config.Config, *segment.Config, int64)
	}{
		"max-wait": {around(time.Millisecond, time.Minute), func(c *config.Config, e *segment.Config, v int64) {
			c.Segment.MaxWait, e.MaxWait = time.Duration(v), time.Duration(v)
		}},
		"load-timeout": {around(10*time.Millisecond, time.Minute), func(c *config.Config, e *segment.Config, v int64) {
			c.Segment.LoadTimeout, e.LoadTimeout = time.Duration(v), time.Duration(v)
		}},
		"sync-interval": {around(100*time.Millisecond, time.Hour), func(c *config.Config, e *segment.Config, v int64) {
			c.Segment.SyncInterval, e.SyncInterval = time.Duration(v), time.Duration(v)
		}},
		"negative-ttl": {around(time.Millisecond, time.Minute), func(c *config.Config, e *segment.Config, v int64) {
			c.Segment.NegativeTTL, e.NegativeTTL = time.Duration(v), time.Duration(v)
		}},
		"max-loads": {[]int64{-1, 1, 2, 999, 1000, 1001}, func(c *config.Config, e *segment.Config, v int64) { c.Segment.MaxLoads, e.MaxLoads = v, int(v) }},
		"max-step":  {[]int64{-1, 1, 2, 1<<30 - 1, 1 << 30, 1<<30 + 1}, func(c *config.Config, e *segment.Config, v int64) { c.Segment.MaxStep, e.MaxStep = v, v }},
	} {
		for _, v := range f.values {
			c, e := key, engine
			f.set(&c, &e, v)
			if got, want := c.Validate(), e.Validate(); blames(got, "segment."+name) != (want != nil) {
				t.Errorf("%s %d: the key says %v, the engine %v", name, v, got, want)
			}
		}
	}
}

// blames reports whether one of the joined errors is about the key.
func blames(err error, key string) bool {
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		return slices.ContainsFunc(joined.Unwrap(), func(e error) bool { return blames(e, key) })
	}
	e, ok := errors.AsType[*config.Error](err)
	return ok && e.Key == key
}

// around returns the ends of an interval, and values on both sides of each.
func around(lo, hi time.Duration) (all []int64) {
	for _, d := range []time.Duration{1, lo - 1, lo, lo + 1, hi - 1, hi, hi + 1, 1000 * hi} {
		all = append(all, int64(d))
	}
	return all
}
