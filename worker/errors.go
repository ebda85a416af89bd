package worker

import (
	"errors"
	"fmt"

	"github.com/leaf-idgen/leaf"
)

// Errors of a Registry. Every other error means that the registry could not be
// reached or did not answer, and that the outcome of a write is unknown.
var (
	// ErrTaken: another live process holds this identity. It may go away.
	ErrTaken = errors.New("worker: the identity is held by another process")

	// ErrDamaged: the record of this identity cannot be read, so the holder is unknown. It may
	// be mended, and all other identities can be claimed.
	ErrDamaged = errors.New("worker: the record of this identity cannot be read")

	// ErrFull: no number of the range is free. One may become free.
	ErrFull = errors.New("worker: no free worker ID")

	// errNoneReturns is ErrFull where no number returns in the time that a crash explains: their records
	// cannot be read, another program has them, or the clock of the last owner was far ahead.
	errNoneReturns = fmt.Errorf("%w", ErrFull)

	// ErrLost: the claim is no longer what this process wrote. It must stop issuing.
	ErrLost = errors.New("worker: the claim is lost")

	// ErrForeign: the registry belongs to another namespace, layout or epoch, or
	// holds something that this program must not interpret. Permanent for this start.
	ErrForeign = errors.New("worker: the registry belongs to another namespace or layout")

	// ErrSchema: the registry answers, but lacks what must be created by a command
	// first; the text names it. Permanent for this start.
	ErrSchema = errors.New("worker: the registry is not prepared")

	// ErrAhead: the numbers of the namespace may be used only from a moment on that no crash
	// and no wipe explains: a clock is or was wrong. A claim would mark its number with that
	// moment for ever, so none is made. It matches leaf.ErrClock.
	ErrAhead = fmt.Errorf("%w: worker: the worker IDs lie in the future", leaf.ErrClock)

	// ErrNotFound: no such number, for the administrative calls.
	ErrNotFound = errors.New("worker: no such worker ID")
)
