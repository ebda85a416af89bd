package leaf

import (
	"context"
	"fmt"
)

// MaxEntities is the largest number of requests in one call of a Sequencer.
const MaxEntities = 1000

// Sequencer gives each entity of a sequence, such as a user or a chat, numbers of its own.
//
// Uniqueness: no entity is given a number twice, by this process or by any other that shares its store. Order: if
// the answer of one call arrives before another call begins, anywhere, the second number of the entity is larger.
// Numbers may be left out. The numbers of a lost reply are lost, so every call may be repeated.
//
// All methods are safe for concurrent use.
type Sequencer interface {
	// NextEach answers 1 to MaxEntities requests, each by itself; the results have the order of the requests.
	// Requests for the same entity count as calls at the same time. The error is for the whole call; it and those of
	// the results are as of Issuer.
	NextEach(ctx context.Context, sequence string, requests []SequenceRequest) ([]SequenceResult, error)
}

// SequenceRequest asks for the next Count numbers of an entity. With From, these and all later ones are From or larger.
type SequenceRequest struct {
	// Entity is 1 to 64 bytes of valid UTF-8 without U+0000, compared byte by byte.
	Entity string

	// Count is 0 to MaxBatch, and at most MaxBatch in all requests of a call. 0: the entity is given no number, and
	// the range of the result, which is empty, begins at the smallest that can come next.
	Count int

	// From is at most MaxBatch above the numbers that are reserved for the entities next to this one.
	From int64
}

// SequenceResult is what one SequenceRequest got: exactly Count numbers, or an error.
type SequenceResult struct {
	Range Range
	Err   error
}

// ValidateSequence returns ErrBadRequest if a call of a Sequencer is outside its limits. It does not look at the
// entities.
func ValidateSequence(sequence string, requests []SequenceRequest) error {
	if err := ValidateTag(sequence); err != nil {
		return err
	}
	if len(requests) < 1 || len(requests) > MaxEntities {
		return BadField("requests", len(requests), fmt.Sprintf("must be 1 to %d", MaxEntities))
	}
	total := 0
	for _, r := range requests {
		if r.Count < 0 || r.Count > MaxBatch {
			return BadField("count", r.Count, fmt.Sprintf("must be 1 to %d", MaxBatch))
		}
		total += r.Count
	}
	if total > MaxBatch {
		return BadField("requests", fmt.Sprintf("%d numbers", total), fmt.Sprintf("must ask for at most %d in all", MaxBatch))
	}
	return nil
}

// DisabledSequence is the Sequencer of a mode that is switched off, as [Disabled] is its Issuer.
type DisabledSequence string

// NextEach returns ErrDisabled.
func (d DisabledSequence) NextEach(context.Context, string, []SequenceRequest) ([]SequenceResult, error) {
	return nil, Disabled(d).err()
}
