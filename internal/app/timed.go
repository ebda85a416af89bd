package app

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/leaf-idgen/leaf/driver/sqldb"
	"github.com/leaf-idgen/leaf/internal/meter"
	"github.com/leaf-idgen/leaf/segment"
)

// timed is a store whose loads are timed.
type timed struct {
	*sqldb.Store

	seconds prometheus.Histogram
}

var _ segment.Store = timed{}

func newTimed(s *sqldb.Store, name string) timed {
	return timed{s, meter.NewSeconds("leaf_segment_load_seconds", "Time of a call to the database for a range, whatever the outcome.", prometheus.Labels{"store": name})}
}

// Reserve implements segment.Store.
func (t timed) Reserve(ctx context.Context, req segment.Request) (segment.Reservation, error) {
	begin := time.Now()
	defer func() { t.seconds.Observe(time.Since(begin).Seconds()) }()
	return t.Store.Reserve(ctx, req)
}
