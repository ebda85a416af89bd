package meter

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/leaf-idgen/leaf"
)

// Sample says that one request in so many is timed.
const Sample = 16

// Modes, as indexes.
const (
	segmentMode = iota
	snowflakeMode
	modes
)

// ok is the index of its word in results; the codes of the errors follow.
const ok = 0

// results are the values of the label result.
var results = func() []string {
	all := []string{"ok"}
	for _, c := range leaf.Classes() {
		all = append(all, c.Code)
	}
	return all
}()

// maxResults is the room for results. A test compares the two.
const maxResults = 16

// counts are those of a mode.
type counts struct {
	results [maxResults]atomic.Int64
	more    atomic.Int64 // IDs of batches beyond the first of each
}

// shard is the counters of some connections.
type shard struct {
	begun atomic.Int64
	modes [modes]counts
	_     [40]byte // to the end of a cache line
}

// issuer is one mode of what Open returns.
type issuer struct {
	shard   *shard
	counts  *counts
	seconds prometheus.Observer
	inner   leaf.Issuer
}

// Next implements leaf.Issuer.
func (i *issuer) Next(ctx context.Context, tag string) (id int64, err error) {
	begin, returned := i.begin(), false
	defer func() { i.end(begin, returned, err, 1) }()
	id, err = i.inner.Next(ctx, tag)
	returned = true
	return id, err
}

// NextN implements leaf.Issuer.
func (i *issuer) NextN(ctx context.Context, tag string, n int) (ranges []leaf.Range, err error) {
	begin, returned := i.begin(), false
	defer func() { i.end(begin, returned, err, n) }()
	ranges, err = i.inner.NextN(ctx, tag, n)
	returned = true
	return ranges, err
}

// begin returns the zero time if the request is not timed.
func (i *issuer) begin() time.Time {
	if i.shard.begun.Add(1)%Sample != 1 {
		return time.Time{}
	}
	return time.Now()
}

// end counts a request for n IDs. One whose issuer has panicked counts as an internal error.
func (i *issuer) end(begin time.Time, returned bool, err error, n int) {
	switch {
	case !returned:
		i.counts.results[len(results)-1].Add(1)
	case err != nil:
		i.counts.results[resultOf(err)].Add(1)
	default:
		i.counts.results[ok].Add(1)
		if n > 1 {
			i.counts.more.Add(int64(n - 1))
		}
	}
	if !begin.IsZero() {
		i.seconds.Observe(time.Since(begin).Seconds())
	}
}

func resultOf(err error) int {
	code := leaf.ClassOf(err).Code
	for i, name := range results {
		if name == code {
			return i
		}
	}
	return len(results) - 1
}
