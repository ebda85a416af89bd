package app

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/leaf-idgen/leaf/internal/meter"
	"github.com/leaf-idgen/leaf/internal/trace"
	"github.com/leaf-idgen/leaf/segment"
)

// timed is a store whose loads are timed and traced.
type timed struct {
	store

	name    string
	seconds prometheus.Histogram
	tracer  *trace.Tracer // nil: loads have no spans
}

var _ segment.Store = timed{}

func newTimed(s store, name string, tracer *trace.Tracer) timed {
	return timed{s, name, meter.NewSeconds("leaf_segment_load_seconds", "Time of a call to the database for a range, whatever the outcome.", prometheus.Labels{"store": name}), tracer}
}

// Reserve implements segment.Store.
func (t timed) Reserve(ctx context.Context, req segment.Request) (segment.Reservation, error) {
	begin := time.Now()
	defer func() { t.seconds.Observe(time.Since(begin).Seconds()) }()
	s := t.tracer.Start(ctx, trace.Client, "segment load")
	s.Set("leaf.tag", req.Tag)
	s.Set("leaf.store", t.name)
	r, err := t.store.Reserve(ctx, req)
	if err == nil {
		s.Set("leaf.range", r.Range)
	}
	s.End(err)
	return r, err
}
