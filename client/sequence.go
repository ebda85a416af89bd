package client

import (
	"context"
	"fmt"

	"github.com/leaf-idgen/leaf"
)

// Sequence gives each entity of a sequence, such as a user or a chat, strictly increasing numbers of its own. All methods
// are safe for concurrent use. Every call is a request to a node of its own: a program that needs numbers of many
// entities at once asks for them in one NextEach.
type Sequence struct {
	client *Client
	name   string
}

// Sequence returns the sequence of that name. It asks no node.
func (c *Client) Sequence(name string) Sequence { return Sequence{c, name} }

// Next returns the next number of an entity: larger than that of every call, of any program, that had ended before this
// one began.
func (s Sequence) Next(ctx context.Context, entity string) (int64, error) {
	r, err := s.one(ctx, leaf.SequenceRequest{Entity: entity, Count: 1})
	return r.Lo, err
}

// NextN returns the next n numbers of an entity, 1 to leaf.MaxBatch, without a gap between them.
func (s Sequence) NextN(ctx context.Context, entity string, n int) (leaf.Range, error) {
	if n < 1 || n > leaf.MaxBatch {
		return leaf.Range{}, leaf.BadField("count", n, fmt.Sprintf("must be 1 to %d", leaf.MaxBatch))
	}
	return s.one(ctx, leaf.SequenceRequest{Entity: entity, Count: n})
}

// Peek returns a number that the next number of the entity does not fall below. It takes none.
func (s Sequence) Peek(ctx context.Context, entity string) (int64, error) {
	r, err := s.one(ctx, leaf.SequenceRequest{Entity: entity})
	return r.Lo, err
}

// SkipTo makes the next number of the entity, and all later ones, to or larger. to is at most leaf.MaxBatch above the
// numbers that are reserved for the entity and others, else leaf.ErrBadRequest.
func (s Sequence) SkipTo(ctx context.Context, entity string, to int64) error {
	_, err := s.one(ctx, leaf.SequenceRequest{Entity: entity, From: to})
	return err
}

// NextEach answers up to leaf.MaxEntities requests in one call, as leaf.Sequencer says.
func (s Sequence) NextEach(ctx context.Context, requests []leaf.SequenceRequest) ([]leaf.SequenceResult, error) {
	return s.client.NextEach(ctx, s.name, requests)
}

func (s Sequence) one(ctx context.Context, request leaf.SequenceRequest) (leaf.Range, error) {
	results, err := s.client.NextEach(ctx, s.name, []leaf.SequenceRequest{request})
	if err == nil {
		err = results[0].Err
	}
	if err != nil {
		return leaf.Range{}, err
	}
	return results[0].Range, nil
}
