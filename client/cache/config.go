package cache

import (
	"cmp"
	"fmt"
	"time"

	"github.com/leaf-idgen/leaf"
)

// Defaults of Config.
const (
	defaultMin          = 10
	defaultMax          = leaf.MaxBatch
	defaultSpan         = 5 * time.Second
	defaultFetchTimeout = 2 * time.Second
	defaultMaxTags      = 10_000
)

// Config says how much a Cache holds. Every zero field means its default.
type Config struct {
	// Min and Max bound the IDs of one fetch, 1 to leaf.MaxBatch. The first fetch of a
	// tag takes Min; each following one twice as many as the one before if that lasted
	// less than half of Span, half as many if it lasted more than twice Span, or if a
	// limit refused it or the source had not so many, then also below Min. What a process that is killed loses is two
	// fetches per tag. Defaults 10 and leaf.MaxBatch.
	Min, Max int

	// Span is how long the IDs of one fetch should last at the present rate, and so how
	// long an outage of the source is ridden out. It is no limit of age: IDs in memory do
	// not expire, so the next ID of a tag that was not used for a day is a day old. 1 ms to
	// 24 h, default 5 s.
	Span time.Duration

	// FetchTimeout is the deadline of one fetch. It does not depend on the deadlines of the
	// callers, because one fetch serves many. A caller that comes in the middle of a fetch
	// whose time runs out waits for one more fetch. 1 ms to 1 h, default 2 s.
	FetchTimeout time.Duration

	// MaxTags bounds the tags in memory. Calls for others go through to the source.
	// Default 10,000.
	MaxTags int

	// Runtime is the clock and the goroutines. Default leaf.SystemRuntime().
	Runtime leaf.Runtime
}

// withDefaults returns c with every zero field set.
func (c Config) withDefaults() Config {
	c.Max = cmp.Or(c.Max, defaultMax)
	c.Min = cmp.Or(c.Min, min(defaultMin, c.Max))
	c.MaxTags = cmp.Or(c.MaxTags, defaultMaxTags)
	c.Span = cmp.Or(c.Span, defaultSpan)
	c.FetchTimeout = cmp.Or(c.FetchTimeout, defaultFetchTimeout)
	if c.Runtime == nil {
		c.Runtime = leaf.SystemRuntime()
	}
	return c
}

// validate returns leaf.ErrBadRequest for the first field outside its limits.
func (c Config) validate() error {
	switch {
	case c.Max < 1 || c.Max > leaf.MaxBatch:
		return leaf.BadField("cache.max", c.Max, fmt.Sprintf("must be 1 to %d, or 0 for the default", leaf.MaxBatch))
	case c.Min < 1 || c.Min > c.Max:
		return leaf.BadField("cache.min", c.Min, fmt.Sprintf("must be 1 to cache.max=%d, or 0 for the default", c.Max))
	case c.Span < time.Millisecond || c.Span > 24*time.Hour:
		return leaf.BadField("cache.span", c.Span, "must be 1ms to 24h, or 0 for the default")
	case c.FetchTimeout < time.Millisecond || c.FetchTimeout > time.Hour:
		return leaf.BadField("cache.fetch_timeout", c.FetchTimeout, "must be 1ms to 1h, or 0 for the default")
	case c.MaxTags < 1:
		return leaf.BadField("cache.max_tags", c.MaxTags, "must be 1 or more, or 0 for the default")
	}
	return nil
}
