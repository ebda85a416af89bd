package client

import (
	"context"
	"errors"
	"log/slog"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/client/cache"
	"github.com/leaf-idgen/leaf/client/check"
	"github.com/leaf-idgen/leaf/leafpb"
)

// WithCache keeps ranges of segment mode in memory, overriding the default of none: a
// call then costs nanoseconds, and an outage of all nodes is ridden out for a while. IDs
// are unique as ever; they may be older when they are used, those of two ranges come in
// any order, and what is in memory when the process ends is lost (Stats.Cache.Unused
// after a Close). The Runtime of config is that of the client. Snowflake mode and tags in
// strict order are not cached. See package client/cache for the fields and their limits.
func WithCache(config cache.Config) Option {
	return func(o *options) { o.cache = &config } // New copies it: the option may be used again
}

// WithUniquenessCheck makes the client remember every ID that it receives, overriding
// the default of not doing so, and fail the calls of an answer that repeats an ID, or
// that steps back, in segment mode, on one stream to one node: with check.ErrRepeated or
// check.ErrDecreasing, an ERROR in the log, and Stats.Violations. It is for tests and
// canaries: it costs memory, 16 bytes for each run of IDs without a gap, at most 16 MB
// per tag. The IDs of a tag that lives in several databases may step back: do not check them.
func WithUniquenessCheck() Option { return func(o *options) { o.unique = true } }

// uncached is the source of the cache.
type uncached struct{ c *Client }

// Next implements leaf.Issuer.
func (u uncached) Next(ctx context.Context, tag string) (int64, error) {
	return u.c.next(ctx, leafpb.Mode_MODE_SEGMENT, tag)
}

// NextN implements leaf.Issuer.
func (u uncached) NextN(ctx context.Context, tag string, n int) ([]leaf.Range, error) {
	ranges, _, err := u.NextNStrict(ctx, tag, n)
	return ranges, err
}

// NextNStrict implements cache.StrictIssuer.
func (u uncached) NextNStrict(ctx context.Context, tag string, n int) (ranges []leaf.Range, strict bool, err error) {
	return u.c.nextN(ctx, leafpb.Mode_MODE_SEGMENT, tag, n)
}

// observe shows an answer to the checker, if there is one. It is called in the order in
// which the answers of a stream come, before a caller gets an ID of the answer.
func (c *Client) observe(a *attempt, ranges []leaf.Range) error {
	if c.seen == nil {
		return nil
	}
	tag := "segment/" + a.Tag
	snowflake := a.Mode == leafpb.Mode_MODE_SNOWFLAKE
	if snowflake {
		tag = "snowflake" // its IDs are one series, whatever the caller calls them
	}
	err := c.seen.Observe(a.Stream, tag, ranges)
	if snowflake && errors.Is(err, check.ErrDecreasing) {
		return nil // the node has taken another worker ID
	}
	if err != nil {
		c.stats.violations.Add(1)
		c.log.add(slog.LevelError, "an ID came that must not: stop using this cluster and look at its databases and nodes", "node", a.node.info.Load().ID, "error", err)
	}
	return err
}
