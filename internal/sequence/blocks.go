package sequence

import (
	"context"

	"github.com/leaf-idgen/leaf"
)

// Blocks gives sections their blocks. Methods are safe for concurrent use.
type Blocks interface {
	// Reserve returns a block of exactly n numbers, 1 to leaf.MaxBatch, that no other call for the section has
	// returned or will return, on any node. It honours ctx, and does its own retries and pauses between them.
	// The error says whether a retry can help; leaf.ErrNotReady if this node does not own the section.
	Reserve(ctx context.Context, section int, n int64) (Block, error)
}

// Block is a block of numbers with the term in which it may be used.
type Block struct {
	Range leaf.Range

	// Term was in force before the block was asked for. While it is valid, the block lies above everything
	// that was reserved for the section before it began.
	Term Term
}

// Term is one time in which this node owns a section. Terms of different times can be compared, and are not equal.
type Term interface {
	// Valid reports whether the node owns the section still. If so, no other node has given a number of it
	// between the begin of the term and the moment before the call. A term that has ended never comes back.
	Valid() bool
}
