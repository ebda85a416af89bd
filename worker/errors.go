package worker

import "errors"

// Errors of a Registry. Every other error means that the registry could not be
// reached or did not answer, and that the outcome of a write is unknown.
var (
	// ErrTaken: another live process holds this identity. It may go away.
	ErrTaken = errors.New("worker: the identity is held by another process")

	// ErrFull: no number of the range is free. One may become free.
	ErrFull = errors.New("worker: no free worker ID")

	// ErrLost: the claim is no longer what this process wrote. It must stop issuing.
	ErrLost = errors.New("worker: the claim is lost")

	// ErrForeign: the registry belongs to another namespace, layout or epoch, or
	// holds something that this program must not interpret. Permanent for this start.
	ErrForeign = errors.New("worker: the registry belongs to another namespace or layout")

	// ErrSchema: the registry answers, but lacks what must be created by a command
	// first; the text names it. Permanent for this start.
	ErrSchema = errors.New("worker: the registry is not prepared")

	// ErrNotFound: no such number, for the administrative calls.
	ErrNotFound = errors.New("worker: no such worker ID")
)
