package forward

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/internal/bounded"
	"github.com/leaf-idgen/leaf/internal/owner"
)

// Look reads from the registries who owns the tags now, or waits for the readings under way.
type Look func(ctx context.Context, tags []string) error

// Sequences returns the sequences of a node: a request that the local ones refuse with an *owner.ElsewhereError goes to
// the owner of the entity's section, in one call for all that this owner is asked for. The promises are those of the Issuer.
func (i *Issuer) Sequences(local leaf.Sequencer, look Look) leaf.Sequencer {
	return sequences{i, local, look}
}

type sequences struct {
	*Issuer

	local leaf.Sequencer
	look  Look
}

// batch is the requests of one call that have no answer yet.
type batch struct {
	sequence string
	requests []leaf.SequenceRequest
	results  []leaf.SequenceResult
	left     map[int]*owner.ElsewhereError // by number of the request: who is to answer it
}

// NextEach implements leaf.Sequencer.
func (s sequences) NextEach(ctx context.Context, sequence string, requests []leaf.SequenceRequest) ([]leaf.SequenceResult, error) {
	results, err := s.local.NextEach(ctx, sequence, requests)
	if err != nil {
		return nil, err
	}
	b := &batch{sequence: sequence, requests: requests, results: results, left: elsewhere(results)}
	if len(b.left) > 0 {
		leaf.Waits(ctx) // first: a server may take a while to send the replies before
		ctx, cancel := s.rt.WithTimeout(ctx, s.cfg.MaxWait)
		defer cancel()
		s.followAll(ctx, b)
	}
	return results, nil
}

// elsewhere returns the results that another node is to give.
func elsewhere(results []leaf.SequenceResult) map[int]*owner.ElsewhereError {
	var left map[int]*owner.ElsewhereError
	for i, r := range results {
		if r.Err == nil {
			continue
		}
		if e, ok := errors.AsType[*owner.ElsewhereError](r.Err); ok {
			if left == nil {
				left = map[int]*owner.ElsewhereError{}
			}
			left[i] = e
		}
	}
	return left
}

// followAll is follow for a batch.
func (s sequences) followAll(ctx context.Context, b *batch) {
	place := place{of: &s.waiting}
	defer place.leave()
	missed := false
	for pause := time.Duration(0); ; pause = min(max(2*pause, firstPause), longestPause) {
		s.askAll(ctx, b)
		if len(b.left) == 0 {
			return
		}
		missed = missed || ctx.Err() == nil
		if err := place.take(s.rt); err != nil {
			s.failed.Add(int64(len(b.left)))
			s.give(b, func(int) error { return err })
			return
		}
		if pause > 0 && s.rt.Wait(ctx, nil, pause) != nil || s.look(ctx, b.tags()) != nil {
			if missed {
				s.failed.Add(int64(len(b.left)))
			}
			s.give(b, func(i int) error { return gaveUp(b.left[i].Tag, b.results[i].Err) })
			return
		}
		if err := b.again(ctx, s.local); err != nil {
			s.give(b, func(int) error { return err })
			return
		}
	}
}

// give ends what is left with errors.
func (s sequences) give(b *batch, err func(i int) error) {
	for i := range b.left {
		b.results[i] = leaf.SequenceResult{Err: err(i)}
	}
}

// tags returns the rows whose owners are not known.
func (b *batch) tags() []string {
	set := map[string]bool{}
	for _, e := range b.left {
		set[e.Tag] = true
	}
	return slices.Collect(maps.Keys(set))
}

// again asks the local sequences for what is left.
func (b *batch) again(ctx context.Context, local leaf.Sequencer) error {
	numbers, requests := b.some(func(int) bool { return true })
	got, err := local.NextEach(ctx, b.sequence, requests)
	if err != nil {
		return err
	}
	left := elsewhere(got)
	for k, i := range numbers {
		b.results[i] = got[k]
		if e := left[k]; e != nil {
			b.left[i] = e
		} else {
			delete(b.left, i)
		}
	}
	return nil
}

// some returns the requests that are left and that match, with their numbers.
func (b *batch) some(match func(i int) bool) (numbers []int, requests []leaf.SequenceRequest) {
	for i := range b.requests { // in this order: an entity may be there twice
		if b.left[i] != nil && match(i) {
			numbers, requests = append(numbers, i), append(requests, b.requests[i])
		}
	}
	return numbers, requests
}

// askAll is one attempt at all owners that are known. What they have answered is left no more. A panic is the error of the
// requests for its owner: the servers log it.
func (s sequences) askAll(ctx context.Context, b *batch) {
	type part struct {
		to      owner.Route
		numbers []int
		results []leaf.SequenceResult
		err     error
	}
	owners := map[owner.Route]bool{}
	for _, e := range b.left {
		if e.Route.Address != "" && e.Route.Address != s.cfg.Self {
			owners[sameOwner(e.Route)] = true
		}
	}
	parts := make([]part, 0, len(owners))
	var calls sync.WaitGroup
	for to := range owners {
		numbers, requests := b.some(func(i int) bool { return sameOwner(b.left[i].Route) == to })
		parts = append(parts, part{to: to, numbers: numbers})
		p := &parts[len(parts)-1] // there is room, so it stays where it is
		calls.Go(func() {
			ctx, cancel := s.rt.WithTimeout(ctx, s.cfg.Attempt)
			defer cancel()
			p.results, p.err = bounded.Recover("the call to an owner", func() ([]leaf.SequenceResult, error) {
				return s.cfg.Remote.NextEach(ctx, p.to, b.sequence, requests)
			})
		})
	}
	calls.Wait()
	for _, p := range parts {
		for k, i := range p.numbers {
			r := leaf.SequenceResult{Err: p.err}
			if p.err == nil {
				r = p.results[k]
			}
			b.results[i] = r
			if again(r.Err) {
				continue
			}
			s.forwarded.Add(1)
			if r.Err == nil {
				s.heard(b.left[i].Tag, r.Range.Hi) // what comes next of an entity is not above the end of its row
			}
			delete(b.left, i)
		}
	}
}

// sameOwner returns what routes of one owner have in common: they differ in their epochs.
func sameOwner(r owner.Route) owner.Route { return owner.Route{Address: r.Address, Secret: r.Secret} }

// SequencesHere is Here for sequences.
func SequencesHere(local leaf.Sequencer, look Look) leaf.Sequencer {
	return sequencesHere{local, look}
}

type sequencesHere struct {
	local leaf.Sequencer
	look  Look
}

// NextEach implements leaf.Sequencer.
func (h sequencesHere) NextEach(ctx context.Context, sequence string, requests []leaf.SequenceRequest) ([]leaf.SequenceResult, error) {
	results, err := h.local.NextEach(ctx, sequence, requests)
	b := &batch{sequence: sequence, requests: requests, results: results, left: elsewhere(results)}
	if err != nil || len(b.left) == 0 || h.look(ctx, b.tags()) != nil {
		return results, err
	}
	return results, b.again(ctx, h.local)
}
