package cli

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"text/tabwriter"
	"time"
)

// benchReport is the result of a run.
type benchReport struct {
	Seconds  float64     `json:"seconds"`
	Clients  int         `json:"clients"`
	Count    int         `json:"count"` // IDs per request
	Rate     float64     `json:"rate"`  // wanted; 0: as fast as possible
	Requests uint64      `json:"requests,string"`
	Answered uint64      `json:"answered,string"` // with IDs
	Failed   uint64      `json:"failed,string"`
	NotSent  uint64      `json:"not_sent,string"` // due by the schedule, but all clients were busy until the end
	IDs      int64       `json:"ids,string"`
	PerSec   float64     `json:"requests_per_second"`
	IDsSec   float64     `json:"ids_per_second"`
	Latency  benchDelay  `json:"latency_seconds"`        // of answered requests
	FailedIn *benchDelay `json:"failed_latency_seconds"` // null without failed ones
	Errors   []benchKind `json:"errors"`                 // most frequent first
	Nodes    []benchPart `json:"nodes"`
}

type benchDelay struct {
	P50  float64 `json:"p50"`
	P90  float64 `json:"p90"`
	P99  float64 `json:"p99"`
	P999 float64 `json:"p999"`
	Max  float64 `json:"max"`
}

type benchKind struct {
	Kind  string `json:"kind"`
	Count uint64 `json:"count,string"`
}

type benchPart struct {
	URL      string `json:"url"`
	Answered uint64 `json:"answered,string"`
	Failed   uint64 `json:"failed,string"`
}

func (b *bench) report(c *loadFlags, elapsed time.Duration) *benchReport {
	s := b.tally.snapshot()
	seconds := elapsed.Seconds()
	r := &benchReport{
		Seconds: seconds, Clients: b.clients, Count: b.count, Rate: b.rate,
		Requests: s.answered.total + s.failed.total, Answered: s.answered.total, Failed: s.failed.total, IDs: s.ids,
		Latency: delayOf(s.answered), Errors: []benchKind{},
	}
	r.PerSec, r.IDsSec = float64(r.Requests)/seconds, float64(r.IDs)/seconds
	if r.Failed > 0 {
		d := delayOf(s.failed)
		r.FailedIn = &d
	}
	if due := uint64(b.rate * min(seconds, b.ranFor(c, seconds))); due > r.Requests {
		r.NotSent = due - r.Requests
	}
	b.tally.mu.Lock()
	defer b.tally.mu.Unlock()
	for _, kind := range slices.Sorted(maps.Keys(b.tally.kinds)) {
		r.Errors = append(r.Errors, benchKind{kind, b.tally.kinds[kind]})
	}
	slices.SortStableFunc(r.Errors, func(x, y benchKind) int {
		switch {
		case x.Count > y.Count:
			return -1
		case x.Count < y.Count:
			return 1
		}
		return 0
	})
	for i, n := range b.nodes {
		t := &b.tally.nodes[i]
		r.Nodes = append(r.Nodes, benchPart{n.name(), t.answered.Load(), t.failed.Load()})
	}
	return r
}

// mostFrequentError names what most requests failed with.
func (r *benchReport) mostFrequentError() string {
	if len(r.Errors) == 0 {
		return "no request ended"
	}
	return fmt.Sprintf("%s (%d of %d)", r.Errors[0].Kind, r.Errors[0].Count, r.Failed)
}

// ranFor is for how long requests were due: the wait for the last replies is not part
// of it.
func (*bench) ranFor(c *loadFlags, seconds float64) float64 {
	if c.Duration > 0 {
		return min(seconds, c.Duration.Seconds())
	}
	return seconds
}

func delayOf(c counts) benchDelay {
	return benchDelay{
		c.quantile(0.5).Seconds(), c.quantile(0.9).Seconds(), c.quantile(0.99).Seconds(), c.quantile(0.999).Seconds(), c.max.Seconds(),
	}
}

func (d benchDelay) String() string {
	text := func(s float64) string { return latencyText(time.Duration(s * float64(time.Second))) }
	return fmt.Sprintf("p50 %s, p90 %s, p99 %s, p99.9 %s, max %s", text(d.P50), text(d.P90), text(d.P99), text(d.P999), text(d.Max))
}

func (r *benchReport) print(w io.Writer) error {
	tw := tabwriter.NewWriter(w, 0, 8, 2, ' ', 0)
	line := func(name, format string, args ...any) { fmt.Fprintf(tw, name+"\t"+format+"\n", args...) }
	line("time", "%.1f s, %d clients, %d IDs per request", r.Seconds, r.Clients, r.Count)
	line("requests", "%d, %.0f per second", r.Requests, r.PerSec)
	if r.Rate > 0 {
		line("wanted", "%.0f per second, latencies count from when a request was due; %d not sent", r.Rate, r.NotSent)
	}
	line("IDs", "%d, %.0f per second", r.IDs, r.IDsSec)
	line("latency", "%v", r.Latency)
	line("failed", "%d (%.4f %%)", r.Failed, 100*float64(r.Failed)/float64(max(r.Requests, 1)))
	if r.FailedIn != nil {
		line("failed in", "%v", *r.FailedIn)
	}
	for _, e := range r.Errors {
		line("error", "%s: %d", e.Kind, e.Count)
	}
	if len(r.Nodes) > 1 {
		for _, n := range r.Nodes {
			line("node", "%s: %d answered, %d failed", n.URL, n.Answered, n.Failed)
		}
	}
	return tw.Flush()
}
