package rules_test

import (
	"slices"

	"github.com/prometheus/prometheus/model/histogram"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/tsdb/chunkenc"
	"github.com/prometheus/prometheus/tsdb/chunks"
	"github.com/prometheus/prometheus/util/annotations"
)

// series are all samples of all scrapes. The engine of queries needs no more than this, and the
// database of Prometheus takes minutes to compile.
type series map[string]*samples

// samples are those of one series, in order of time.
type samples struct {
	labels labels.Labels
	all    []chunks.Sample
}

// sample is a number at a time in milliseconds.
type sample struct {
	at int64
	v  float64
}

func (s sample) T() int64                    { return s.at }
func (sample) ST() int64                     { return 0 }
func (s sample) F() float64                  { return s.v }
func (sample) H() *histogram.Histogram       { return nil }
func (sample) FH() *histogram.FloatHistogram { return nil }
func (sample) Type() chunkenc.ValueType      { return chunkenc.ValFloat }
func (s sample) Copy() chunks.Sample         { return s }

func (s series) add(l labels.Labels, at int64, v float64) {
	one := s[l.String()]
	if one == nil {
		one = &samples{labels: l}
		s[l.String()] = one
	}
	one.all = append(one.all, sample{at, v})
}

// Querier implements storage.Queryable.
func (s series) Querier(int64, int64) (storage.Querier, error) {
	return &storage.MockQuerier{SelectMockFunction: func(_ bool, _ *storage.SelectHints, matchers ...*labels.Matcher) storage.SeriesSet {
		var found set
		for _, one := range s {
			if !slices.ContainsFunc(matchers, func(m *labels.Matcher) bool { return !m.Matches(one.labels.Get(m.Name)) }) {
				found.all = append(found.all, one)
			}
		}
		slices.SortFunc(found.all, func(a, b *samples) int { return labels.Compare(a.labels, b.labels) })
		return &found
	}}, nil
}

// set implements storage.SeriesSet.
type set struct {
	all []*samples
	at  *samples
}

func (s *set) Next() bool {
	if len(s.all) == 0 {
		return false
	}
	s.at, s.all = s.all[0], s.all[1:]
	return true
}

func (s *set) At() storage.Series              { return storage.NewListSeries(s.at.labels, s.at.all) }
func (*set) Err() error                        { return nil }
func (*set) Warnings() annotations.Annotations { return nil }
