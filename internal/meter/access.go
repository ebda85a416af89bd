package meter

import (
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/leaf-idgen/leaf"
)

// Access is a leaf.Access that counts what clients of one protocol ask its issuers for. Make it
// with New. All methods are safe for concurrent use.
type Access struct {
	protocol string
	inner    leaf.Access
	seconds  prometheus.Histogram
	shards   [shards]shard
	turn     atomic.Uint32
	unnamed  [shards]atomic.Pointer[opened] // the last of each shard
}

var _ leaf.Access = (*Access)(nil)

// shards is how many sets of counters an Access has, so that connections on different
// processors rarely share one.
const shards = 16

// opened is what Open returned, and for which issuers.
type opened struct {
	of      *leaf.Issuers
	issuers leaf.Issuers
	modes   [modes]issuer

	sequences sequencer
}

// buckets are in seconds. A request in stock takes about a microsecond, and one that waits for
// a range as long as the database does.
var buckets = []float64{50e-6, 100e-6, 250e-6, 500e-6, 1e-3, 2.5e-3, 5e-3, 10e-3, 25e-3, 50e-3, 100e-3, 250e-3, 500e-3, 1}

// NewSeconds returns a histogram of durations in seconds, both classic and native. A scrape
// that asks for protobuf gets the native one.
func NewSeconds(name, help string, labels prometheus.Labels) prometheus.Histogram {
	return prometheus.NewHistogram(prometheus.HistogramOpts{
		Name: name, Help: help, ConstLabels: labels, Buckets: buckets,
		NativeHistogramBucketFactor: 1.1, NativeHistogramMaxBucketNumber: 160, NativeHistogramMinResetDuration: time.Hour,
	})
}

// New returns an Access to inner for the clients of a protocol.
func New(inner leaf.Access, protocol string) *Access {
	a := &Access{
		protocol: protocol, inner: inner,
		seconds: NewSeconds("leaf_request_seconds", "Time from a request that was read to its IDs or its error, of some requests.",
			prometheus.Labels{"protocol": protocol}),
	}
	a.due()
	return a
}

// due lets the next request of each shard be timed.
func (a *Access) due() {
	for i := range a.shards {
		a.shards[i].due.Store(true)
	}
}

// Open implements leaf.Access. What it refuses is not counted here: the gate does that, by
// reason.
func (a *Access) Open(c leaf.Credentials) (*leaf.Issuers, error) {
	issuers, err := a.inner.Open(c)
	if err != nil {
		return nil, err
	}
	n := a.turn.Add(1) % shards
	last := &a.unnamed[n]
	if o := last.Load(); o != nil && o.of == issuers { // all clients without a name have the same ones
		return &o.issuers, nil
	}
	o := &opened{of: issuers}
	for mode, inner := range []leaf.Issuer{issuers.Segment, issuers.Snowflake} {
		o.modes[mode] = issuer{shard: &a.shards[n], counts: &a.shards[n].modes[mode], seconds: a.seconds, inner: inner}
	}
	o.sequences = sequencer{&o.modes[segmentMode], issuers.Sequencer()}
	o.issuers = leaf.Issuers{Segment: &o.modes[segmentMode], Snowflake: &o.modes[snowflakeMode], Sequence: &o.sequences}
	last.Store(o)
	return &o.issuers, nil
}

// Guarded implements leaf.Access.
func (a *Access) Guarded() bool { return a.inner.Guarded() }

// Protocol returns the name given to New.
func (a *Access) Protocol() string { return a.protocol }

// Collect sends the histogram of the timed requests. It also makes the next requests be timed:
// otherwise a quiet node would have no timed request between two scrapes.
func (a *Access) Collect(to chan<- prometheus.Metric) {
	a.seconds.Collect(to)
	a.due()
}

// Count is how often requests for a mode had a result, "ok" or the code of an error.
type Count struct {
	Mode, Result string
	Requests     int64
	IDs          int64 // issued; 0 unless the result is ok
}

// Counts returns all modes with all results, also those that never were.
func (a *Access) Counts() []Count {
	all := make([]Count, 0, modes*len(results))
	for mode, name := range []string{leaf.SegmentMode, leaf.SnowflakeMode} {
		for result, code := range results {
			n := Count{Mode: name, Result: code}
			for i := range a.shards {
				n.Requests += a.shards[i].modes[mode].results[result].Load()
			}
			if result == ok {
				n.IDs = n.Requests
				for i := range a.shards {
					n.IDs += a.shards[i].modes[mode].more.Load()
				}
			}
			all = append(all, n)
		}
	}
	return all
}
