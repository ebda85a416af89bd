package leaf

import (
	"errors"
	"fmt"
)

// The sentinels: one per idea, matched with errors.Is, declared nowhere else.
// What each means on a wire is one row of the table in class.go.
var (
	// ErrBadRequest: the request itself is wrong (tag name, count, parameter).
	// The message names the field, the value and the limit. No retry helps.
	ErrBadRequest = errors.New("leaf: bad request")

	// ErrUnknownTag: the store was asked and has no row for this tag.
	ErrUnknownTag = errors.New("leaf: unknown tag")

	// ErrNotReady: no range could be obtained yet, because the store or registry
	// did not answer. A retry helps once it does.
	ErrNotReady = errors.New("leaf: not ready")

	// ErrExhausted: the ranges in memory are used up and the next one did not arrive
	// before the caller's deadline, or so many wait for it that one more would wait in
	// vain. A retry helps, best on another node.
	ErrExhausted = errors.New("leaf: exhausted, retry")

	// ErrThrottled: a limit that an administrator set was reached. A retry helps later.
	ErrThrottled = errors.New("leaf: throttled")

	// ErrUnauthenticated: the client did not show the token that this server asks for.
	ErrUnauthenticated = errors.New("leaf: not authenticated")

	// ErrForbidden: the token or certificate of the client has not the role that the
	// request needs. The message names the role.
	ErrForbidden = errors.New("leaf: forbidden")

	// ErrBlocked: an operator has switched this tag or this client off. A retry helps
	// only once it is switched on again.
	ErrBlocked = errors.New("leaf: switched off by an operator")

	// ErrClock: the clock cannot be trusted, so no time-based ID may be issued.
	ErrClock = errors.New("leaf: clock error")

	// ErrRegress: the store handed out a range below the highest end that this
	// node knows. The tag is latched: it loads no more until an operator repairs
	// it, because numbers may already be in use (rule A).
	ErrRegress = errors.New("leaf: the store went backwards, tag latched until repaired")

	// ErrInvalidRow: the tag's row holds a step or max_id outside its limits. It
	// is served again as soon as the row is corrected.
	ErrInvalidRow = errors.New("leaf: invalid row")

	// ErrOverflow: the tag's number space is used up. It never heals by itself.
	ErrOverflow = errors.New("leaf: number space used up")

	// ErrConflict: a management command met a state it must not overwrite.
	ErrConflict = errors.New("leaf: conflict")

	// ErrDisabled: the mode is switched off or not part of this build.
	ErrDisabled = errors.New("leaf: mode not enabled")
)

// BadField returns an error that is ErrBadRequest and names the field, the value
// and the limit that the value breaks, e.g. `count=0: must be 1 to 100000`.
func BadField(field string, value any, limit string) error {
	const longest = 64 // enough to recognise a value, too little to flood a log
	text := fmt.Sprint(value)
	if len(text) > longest {
		text = text[:longest] + "..."
	}
	return fmt.Errorf("%w: %s=%q: %s", ErrBadRequest, field, text, limit)
}
