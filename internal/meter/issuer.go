package meter

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/leaf-idgen/leaf"
)

// Sample says how seldom a busy node times a request: one in so many of each result.
const Sample = 64

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
	if len(all) > maxResults {
		panic("internal/meter: maxResults is too small for the table of errors")
	}
	return all
}()

// maxResults is how many results there can be: more than the table of errors has, so that a new
// error needs no change here.
const maxResults = 32

// counts are those of a mode.
type counts struct {
	results [maxResults]atomic.Int64
	more    atomic.Int64 // IDs of batches beyond the first of each
}

// shard is the counters of some connections.
type shard struct {
	due   atomic.Bool // the next request is timed
	modes [modes]counts
	_     [40]byte // to the end of a cache line
}

// issuer is one mode of what Open returns. A request whose inner issuer panics is not counted:
// to defer the counting would cost more than the counting, and the log has each panic.
type issuer struct {
	shard   *shard
	counts  *counts
	seconds prometheus.Observer
	inner   leaf.Issuer
}

// Next implements leaf.Issuer.
func (i *issuer) Next(ctx context.Context, tag string) (int64, error) {
	var begin time.Time
	if i.shard.due.Load() {
		begin = i.shard.begin()
	}
	id, err := i.inner.Next(ctx, tag)
	if err == nil {
		i.count(ok)
	} else {
		i.count(resultOf(err))
	}
	if !begin.IsZero() {
		i.seconds.Observe(time.Since(begin).Seconds())
	}
	return id, err
}

// NextN implements leaf.Issuer.
func (i *issuer) NextN(ctx context.Context, tag string, n int) ([]leaf.Range, error) {
	begin := i.shard.begin()
	ranges, err := i.inner.NextN(ctx, tag, n)
	if err == nil {
		i.counts.more.Add(int64(n - 1))
		i.count(ok)
	} else {
		i.count(resultOf(err))
	}
	if !begin.IsZero() {
		i.seconds.Observe(time.Since(begin).Seconds())
	}
	return ranges, err
}

// begin returns the zero time if the request is not timed.
func (s *shard) begin() time.Time {
	if s.due.Load() && s.due.CompareAndSwap(true, false) {
		return time.Now()
	}
	return time.Time{}
}

func (i *issuer) count(result int) {
	if i.counts.results[result].Add(1)%Sample == 0 {
		i.shard.due.Store(true)
	}
}

func resultOf(err error) int {
	code := leaf.ClassOf(err).Code
	for i, name := range results {
		if name == code {
			return i
		}
	}
	return len(results) - 1 // internal
}
