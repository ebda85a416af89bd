package limit

import (
	"context"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/internal/auth"
)

// sequencer is the sequences of a client. They have the limits of the tag of their name, and wait with the requests of
// segment mode, which has their numbers: with those for tags in several databases, if there are several. A request that
// is given no number counts as one that is given one.
type sequencer struct{ client *client }

// NextEach implements leaf.Sequencer.
func (s *sequencer) NextEach(ctx context.Context, sequence string, requests []leaf.SequenceRequest) (results []leaf.SequenceResult, err error) {
	g := s.client.gate
	if leaf.ValidateSequence(sequence, requests) != nil {
		return g.sequences.NextEach(ctx, sequence, requests) // which says what is wrong
	}
	var spent spending
	if t := g.table.Load(); len(t.tags)+len(t.clients) > 0 {
		if err := s.client.modes[segment].spend(t, &spent, sequence, cost(requests, nil)); err != nil {
			return nil, err
		}
	}
	k := g.ofMany.slot(ctx, sequence)
	defer func() { // also when the engine panics
		if spent.n > 0 {
			spent.n = cost(requests, results)
			_ = spent.settle(leaf.ErrExhausted) // of those that were given nothing
		}
		failed := err
		for _, r := range results {
			if failed = r.Err; failed == nil {
				break
			}
		}
		if refused := k.release(failed); err != nil {
			results, err = nil, refused
		}
	}()
	return g.sequences.NextEach(k, sequence, requests)
}

// cost is what requests take from limits, or those of them that have failed.
func cost(requests []leaf.SequenceRequest, results []leaf.SequenceResult) (n int64) {
	for i, r := range requests {
		if results == nil || results[i].Err != nil {
			n += int64(max(r.Count, 1))
		}
	}
	return n
}

// sequencesOf is the sequences behind the roles of a named token or a certificate.
type sequencesOf struct {
	grant *auth.Grant
	inner leaf.Sequencer
}

// NextEach implements leaf.Sequencer.
func (s *sequencesOf) NextEach(ctx context.Context, sequence string, requests []leaf.SequenceRequest) ([]leaf.SequenceResult, error) {
	if err := s.grant.Issue(sequence); err != nil {
		return nil, err
	}
	return s.inner.NextEach(ctx, sequence, requests)
}

// heldSequences is held for sequences.
type heldSequences struct {
	held

	inner leaf.Sequencer
}

// NextEach implements leaf.Sequencer.
func (h *heldSequences) NextEach(ctx context.Context, sequence string, requests []leaf.SequenceRequest) ([]leaf.SequenceResult, error) {
	if leaf.ValidateSequence(sequence, requests) == nil {
		if err := h.wait(ctx, sequence); err != nil {
			return nil, err
		}
	}
	return h.inner.NextEach(ctx, sequence, requests)
}
