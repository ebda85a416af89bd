package meter_test

import (
	"context"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/internal/meter"
)

// engine answers with err.
type engine struct{ err error }

func (e *engine) Next(context.Context, string) (int64, error) { return 1, e.err }

func (e *engine) NextN(_ context.Context, _ string, n int) ([]leaf.Range, error) {
	return []leaf.Range{{Lo: 1, Hi: int64(n) + 1}}, e.err
}

// NextEach gives numbers to the first request only.
func (e *engine) NextEach(_ context.Context, _ string, requests []leaf.SequenceRequest) ([]leaf.SequenceResult, error) {
	results := make([]leaf.SequenceResult, len(requests))
	for i := range results {
		results[i].Err = leaf.ErrNotReady
	}
	results[0] = leaf.SequenceResult{Range: leaf.Range{Lo: 1, Hi: 1 + int64(requests[0].Count)}}
	return results, e.err
}

// with is an Access to issuers.
type with struct{ issuers leaf.Issuers }

func (w with) Open(leaf.Credentials) (*leaf.Issuers, error) { return &w.issuers, nil }
func (with) Guarded() bool                                  { return false }

// TestCountsOfSequences: each request of a call counts by itself, in segment mode.
func TestCountsOfSequences(t *testing.T) {
	t.Parallel()
	a := meter.New(with{leaf.Issuers{Segment: &engine{}, Snowflake: &engine{}, Sequence: &engine{}}}, "test")
	issuers, err := a.Open(leaf.Credentials{})
	if err != nil {
		t.Fatal(err)
	}
	_, _ = issuers.Sequence.NextEach(t.Context(), "chat", []leaf.SequenceRequest{{Entity: "1", Count: 5}, {Entity: "2", Count: 5}})
	_, _ = issuers.Sequence.NextEach(t.Context(), "chat", []leaf.SequenceRequest{{Entity: "1"}})
	for _, c := range a.Counts() {
		want := map[string]meter.Count{"ok": {Requests: 2, IDs: 5}, "not_ready": {Requests: 1}}[c.Result]
		if c.Mode == "segment" && (c.Requests != want.Requests || c.IDs != want.IDs) {
			t.Errorf("%+v, want %+v", c, want)
		}
	}
}

func TestCounts(t *testing.T) {
	t.Parallel()
	segment, snowflake := &engine{}, &engine{}
	a := meter.New(leaf.Anyone(segment, snowflake), "test")
	ctx := t.Context()
	for range 3 { // connections
		issuers, err := a.Open(leaf.Credentials{})
		if err != nil {
			t.Fatal(err)
		}
		*segment = engine{}
		_, _ = issuers.Segment.Next(ctx, "a")
		_, _ = issuers.Segment.NextN(ctx, "a", 10)
		_, _ = issuers.Snowflake.Next(ctx, "a")
		segment.err = leaf.Later(leaf.ErrThrottled, "test", 1)
		_, _ = issuers.Segment.Next(ctx, "a")
		_, _ = issuers.Segment.NextN(ctx, "a", 10)
		segment.err = errors.New("outside the table")
		_, _ = issuers.Segment.Next(ctx, "a")
	}
	got := map[meter.Count]bool{}
	for _, c := range a.Counts() {
		if c.Requests > 0 {
			got[c] = true
		}
	}
	want := map[meter.Count]bool{
		{Mode: "segment", Result: "ok", Requests: 6, IDs: 33}:  true,
		{Mode: "segment", Result: "throttled", Requests: 6}:    true,
		{Mode: "segment", Result: "internal", Requests: 3}:     true,
		{Mode: "snowflake", Result: "ok", Requests: 3, IDs: 3}: true,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("Counts (-want +got):\n%s", diff)
	}
}

// TestSample: the first request of a set of counters is timed, then one in Sample, and one after
// each scrape.
func TestSample(t *testing.T) {
	t.Parallel()
	a := meter.New(leaf.Anyone(&engine{}, &engine{}), "test")
	issuers, err := a.Open(leaf.Credentials{})
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct{ requests, want int }{
		{1, 1},
		{meter.Sample - 1, 2}, // the second of these is the first after the scrape
		{5 * meter.Sample, 7},
		{1, 8},
		{1, 9},
		{0, 9},
	} {
		for range tt.requests {
			_, _ = issuers.Segment.Next(t.Context(), "a")
		}
		if got := observed(t, a); got != tt.want {
			t.Errorf("after %d more: %d requests timed, want %d", tt.requests, got, tt.want)
		}
	}
}

func observed(t *testing.T, a *meter.Access) int {
	t.Helper()
	to := make(chan prometheus.Metric, 1)
	a.Collect(to)
	var m dto.Metric
	if err := (<-to).Write(&m); err != nil {
		t.Fatal(err)
	}
	if m.GetHistogram().Schema == nil || len(m.GetHistogram().GetBucket()) == 0 {
		t.Error("the histogram is not both native and classic")
	}
	return int(m.GetHistogram().GetSampleCount())
}

func TestRefusedOpen(t *testing.T) {
	t.Parallel()
	a := meter.New(refusing{}, "test")
	if _, err := a.Open(leaf.Credentials{}); !errors.Is(err, leaf.ErrUnauthenticated) {
		t.Errorf("got %v", err)
	}
}

// one gives all clients the same issuers, as the gate does to those without a name.
type one struct{ issuers *leaf.Issuers }

func (o one) Open(leaf.Credentials) (*leaf.Issuers, error) { return o.issuers, nil }

type refusing struct{}

func (one) Guarded() bool { return false }

func (refusing) Guarded() bool { return true }

func (refusing) Open(leaf.Credentials) (*leaf.Issuers, error) { return nil, leaf.ErrUnauthenticated }

// TestEachErrorIsAResult: the results are all errors of the table, and the last one stands for every other error.
func TestEachErrorIsAResult(t *testing.T) {
	t.Parallel()
	if want := len(leaf.Classes()) + 1; len(meter.Results) != want || meter.Results[want-1] != "internal" {
		t.Errorf("%q: want %d, and internal last", meter.Results, want)
	}
}

// TestAllocatesNothing: neither a request nor a connection of a client without a name does.
func TestAllocatesNothing(t *testing.T) {
	a := meter.New(one{&leaf.Issuers{Segment: &engine{}, Snowflake: &engine{}}}, "test")
	warm := func() {
		issuers, _ := a.Open(leaf.Credentials{})
		for range 10 * meter.Sample {
			_, _ = issuers.Segment.Next(context.Background(), "a")
		}
	}
	for range 100 {
		warm()
	}
	if n := testing.AllocsPerRun(100, warm); n >= 1 { // a native histogram makes room for a new bucket now and then
		t.Errorf("%v allocations", n)
	}
}

// BenchmarkNext is what counting adds to a request in stock.
func BenchmarkNext(b *testing.B) {
	issuers, err := meter.New(leaf.Anyone(&engine{}, &engine{}), "test").Open(leaf.Credentials{})
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		_, _ = issuers.Segment.Next(b.Context(), "a")
	}
}
