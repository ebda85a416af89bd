package meter

import (
	"context"
	"time"

	"github.com/leaf-idgen/leaf"
)

// sequencer counts requests for numbers of sequences as those of segment mode: each request of a call by itself.
type sequencer struct {
	mode  *issuer
	inner leaf.Sequencer
}

// NextEach implements leaf.Sequencer.
func (s *sequencer) NextEach(ctx context.Context, sequence string, requests []leaf.SequenceRequest) ([]leaf.SequenceResult, error) {
	begin := s.mode.shard.begin()
	results, err := s.inner.NextEach(ctx, sequence, requests)
	if err != nil {
		s.mode.count(resultOf(err))
	}
	for _, r := range results {
		if r.Err != nil {
			s.mode.count(resultOf(r.Err))
			continue
		}
		s.mode.counts.more.Add(r.Range.Len() - 1)
		s.mode.count(ok)
	}
	if !begin.IsZero() {
		s.mode.seconds.Observe(time.Since(begin).Seconds())
	}
	return results, err
}
