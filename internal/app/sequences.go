package app

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/internal/forward"
	"github.com/leaf-idgen/leaf/internal/owner"
	"github.com/leaf-idgen/leaf/internal/sequence"
	"github.com/leaf-idgen/leaf/internal/spread"
	"github.com/leaf-idgen/leaf/segment"
)

// maxSequences is how many sequences a node serves, each with 80 KB and up to 16 MB of positions. One has 1,024 rows.
const maxSequences = 128

// sequences is the sequences of which this node owns sections. What is in memory of one stays there: a call that loads a
// block for positions that were dropped would give a number above those of the positions that came after, and the
// next call a smaller one.
type sequences struct {
	engine sequence.Tags
	terms  segment.Terms
	config sequence.Config

	mu   sync.Mutex
	open map[string]*sequence.Positions
}

var _ leaf.Sequencer = (*sequences)(nil)

// openSequences returns the sequences that clients use.
func (a *App) openSequences() leaf.Sequencer {
	if a.order == nil {
		return noSequences{}
	}
	a.sequences = &sequences{
		engine: a.alloc, terms: a.order, open: map[string]*sequence.Positions{},
		config: sequence.Config{Step: sequence.MinStep, MaxWait: a.cfg.Segment.MaxWait},
	}
	return a.order.sequencesInFrontOf(a.files.guardSequences(a.sequences))
}

// NextEach implements leaf.Sequencer.
func (s *sequences) NextEach(ctx context.Context, name string, requests []leaf.SequenceRequest) ([]leaf.SequenceResult, error) {
	if err := leaf.ValidateSequence(name, requests); err != nil {
		return nil, err
	}
	own := make([]sequence.Request, len(requests))
	for i, r := range requests {
		e, err := sequence.Parse(r.Entity)
		if err != nil {
			return nil, fmt.Errorf("requests[%d]: %w", i, err)
		}
		own[i] = sequence.Request{Entity: e, Count: r.Count, From: r.From}
	}
	p, err := s.positions(ctx, name, own[0].Entity.Section())
	if err != nil {
		return nil, err
	}
	got, err := p.NextEach(ctx, own)
	if err != nil {
		return nil, err
	}
	results := make([]leaf.SequenceResult, len(got))
	for i, r := range got {
		results[i] = leaf.SequenceResult(r)
	}
	return results, nil
}

// positions returns those of a sequence. Of one that is not in memory, a row must be known first: otherwise clients could
// fill the memory with names.
func (s *sequences) positions(ctx context.Context, name string, section int) (*sequence.Positions, error) {
	if p, err := s.find(name, false); p != nil || err != nil {
		return p, err
	}
	if row := sequence.RowName(name, section); !s.engine.Strict(row) {
		if err := s.learn(ctx, name, row); err != nil {
			return nil, err
		}
	}
	return s.find(name, true)
}

// learn makes the engine read a row, which costs a number of it. A row that another node owns is known as well.
func (s *sequences) learn(ctx context.Context, name, row string) error {
	if err := leaf.ValidateTag(row); err != nil {
		return leaf.BadField("sequence", name, fmt.Sprintf("must have 1 to %d characters", leaf.MaxTagLen-len(sequence.RowName("", 0))))
	}
	_, err := s.engine.Next(ctx, row)
	switch _, elsewhere := errors.AsType[*owner.ElsewhereError](err); {
	case elsewhere || err == nil:
		return nil
	case errors.Is(err, leaf.ErrUnknownTag):
		return fmt.Errorf("%w: sequence %q; leaf sequence create makes one", leaf.ErrUnknownTag, name)
	}
	return err
}

// find returns the positions of a sequence, nil if it is not in memory and not to be made.
func (s *sequences) find(name string, create bool) (*sequence.Positions, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if p := s.open[name]; p != nil || !create {
		return p, nil
	}
	if len(s.open) >= maxSequences {
		return nil, fmt.Errorf("%w: this node has served %d sequences since its start, and serves no more", leaf.ErrExhausted, len(s.open))
	}
	c := s.config
	c.Tag = name
	p, err := sequence.New(sequence.Rows{Tag: name, Tags: s.engine, Terms: s.terms}, c)
	if err == nil {
		s.open[name] = p
	}
	return p, err
}

// sample adds to the metrics. It also drops what is in memory of terms that have ended.
func (s *sequences) sample(to samples) {
	if s == nil {
		return
	}
	s.mu.Lock()
	all := slices.Collect(maps.Values(s.open))
	s.mu.Unlock()
	if len(all) == 0 {
		return
	}
	resident, evicted := 0, int64(0)
	for _, p := range all {
		st := p.Status()
		resident += st.Resident
		evicted += st.Evicted
	}
	to.gauge("leaf_sequences", "Sequences in memory.", float64(len(all)))
	to.gauge("leaf_sequence_entities", "Entities of sequences in memory.", float64(resident))
	to.counter("leaf_sequence_evicted_total", "Entities that have left the memory for others, and jump to higher numbers when they come again.", evicted)
}

// guardSequences is guard for sequences.
func (f *files) guardSequences(inner leaf.Sequencer) leaf.Sequencer {
	return guardedSequences{inner, f}
}

type guardedSequences struct {
	inner leaf.Sequencer
	files *files
}

// NextEach implements leaf.Sequencer.
func (g guardedSequences) NextEach(ctx context.Context, name string, requests []leaf.SequenceRequest) ([]leaf.SequenceResult, error) {
	if err := g.files.lostError(); err != nil {
		return nil, err
	}
	results, err := g.inner.NextEach(ctx, name, requests)
	if lost := g.files.lostError(); lost != nil {
		return nil, lost
	}
	return results, err
}

// sequencesInFrontOf returns the sequences that clients use. local is the node's own with what guards them.
func (o *order) sequencesInFrontOf(local leaf.Sequencer) leaf.Sequencer {
	o.here.Sequence = forward.SequencesHere(local, o.lookAll)
	return o.issuer.Sequences(local, o.lookAll)
}

// routeEntity is grpcd.Config.RouteEntity.
func (o *order) routeEntity(name, entity string) (address string, epoch int64, known bool) {
	return o.owner(sequence.RowName(name, spread.Section(entity)))
}

// lookAll finds out who owns tags now: one reading of each of their databases.
func (o *order) lookAll(ctx context.Context, tags []string) error {
	read := map[*owner.Slots]bool{}
	for _, tag := range tags {
		slots := o.of(tag)
		if slots == nil {
			return leaf.ErrNotReady
		}
		if !read[slots] {
			read[slots] = true
			if err := slots.Find(ctx, tag); err != nil {
				return err
			}
		}
	}
	return nil
}

// noSequences answers on a node that takes no part in strict order.
type noSequences struct{}

// NextEach implements leaf.Sequencer.
func (noSequences) NextEach(context.Context, string, []leaf.SequenceRequest) ([]leaf.SequenceResult, error) {
	return nil, fmt.Errorf("%w: sequences are in strict order, and this node takes no part in it; set grpc.addr", leaf.ErrNotReady)
}
