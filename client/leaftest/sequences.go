package leaftest

import (
	"context"
	"fmt"
	"sync"

	"github.com/leaf-idgen/leaf"
)

// sequences counts for each entity.
type sequences struct {
	like *issuer // its failure and its delay hold here, too

	mu   sync.Mutex
	next map[string]map[string]int64 // by sequence and entity
}

// NextEach implements leaf.Sequencer.
func (s *sequences) NextEach(ctx context.Context, sequence string, requests []leaf.SequenceRequest) ([]leaf.SequenceResult, error) {
	if err := s.like.obstacle(ctx); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	next, known := s.next[sequence]
	if !known {
		return nil, fmt.Errorf("%w: sequence %q", leaf.ErrUnknownTag, sequence)
	}
	results := make([]leaf.SequenceResult, len(requests))
	for i, r := range requests {
		lo := max(next[r.Entity], r.From, 1)
		next[r.Entity] = lo + int64(r.Count)
		results[i].Range = leaf.Range{Lo: lo, Hi: lo + int64(r.Count)}
	}
	return results, nil
}

// AddSequence makes a sequence known. Its entities begin at 1.
func (s *Server) AddSequence(name string) {
	s.each.mu.Lock()
	defer s.each.mu.Unlock()
	s.each.next[name] = map[string]int64{}
}

// access lets everyone in.
type access struct{ issuers leaf.Issuers }

// Open implements leaf.Access.
func (a access) Open(leaf.Credentials) (*leaf.Issuers, error) { return &a.issuers, nil }

// Guarded implements leaf.Access.
func (access) Guarded() bool { return false }
