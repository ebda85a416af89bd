package leaf

import "context"

// MaxBatch is the largest n that NextN accepts.
const MaxBatch = 100_000

// Issuer issues IDs. It is what every protocol server stands on: one Issuer per
// mode, and a server does nothing but translate to it and back.
//
// Uniqueness: for one tag no ID is ever returned twice, by this process or by
// any other that shares its store. Order: within one process the IDs of a tag
// increase in the order in which they were taken, unless the tag lives in several
// databases; across processes they only trend upwards, unless the tag is in strict order.
// An ID whose reply was lost on the way to the caller is lost, not issued again, so every
// call may be retried.
//
// Errors are those of the table ([ClassOf]); in particular [ErrUnknownTag],
// [ErrBadRequest], [ErrNotReady], [ErrExhausted], [ErrRegress], [ErrThrottled],
// [ErrClock] and [ErrDisabled]. All methods are safe for concurrent use. A call
// that must wait ends at ctx's deadline or at the Issuer's own limit, whichever
// comes first, with an error that says whether a retry can help.
type Issuer interface {
	// Next returns one ID.
	Next(ctx context.Context, tag string) (int64, error)

	// NextN returns exactly n IDs, 1 <= n <= MaxBatch, as one or more ranges in
	// increasing order, or an error and no IDs. Adjacent ranges are merged, so two
	// ranges mean that other nodes own the numbers between them.
	NextN(ctx context.Context, tag string, n int) ([]Range, error)
}

// Disabled is the Issuer of a mode that is switched off or not part of this
// build: it answers [ErrDisabled] to everything, naming the mode.
type Disabled string

// Next returns ErrDisabled.
func (d Disabled) Next(context.Context, string) (int64, error) { return 0, d.err() }

// NextN returns ErrDisabled.
func (d Disabled) NextN(context.Context, string, int) ([]Range, error) { return nil, d.err() }

func (d Disabled) err() error { return &disabledError{string(d)} }

type disabledError struct{ mode string }

func (e *disabledError) Error() string { return "leaf: the " + e.mode + " mode is not enabled" }
func (e *disabledError) Unwrap() error { return ErrDisabled }
