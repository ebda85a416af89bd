package snowflake

import (
	"errors"
	"fmt"
	"strconv"
	"time"
)

// The sentinels of this package, one per idea, matched with errors.Is.
var (
	// ErrInvalid: a value lies outside its limits. The message names the field,
	// the value and the limit. No retry helps.
	ErrInvalid = errors.New("snowflake: invalid value")

	// ErrOverflow: the time lies at or beyond the end of the layout. It never heals
	// by itself: the layout has no numbers left for that moment.
	ErrOverflow = errors.New("snowflake: past the end of the layout")

	// ErrClock: the clock is behind the time that IDs were issued for, or that the
	// floor demands, by more than is waited out. It heals by itself as soon as the
	// clock has passed that time. See [ClockError].
	ErrClock = errors.New("snowflake: the clock is behind")

	// ErrSaturated: all IDs of this unit are taken, and the caller's context ended
	// before the next unit began. A retry helps.
	ErrSaturated = errors.New("snowflake: all IDs of this moment are taken, retry")

	// ErrBound: the next ID would lie at or above the bound. A retry helps once
	// the bound is raised with [Generator.SetBound].
	ErrBound = errors.New("snowflake: bound reached, retry once it is raised")

	// ErrStopped: [Generator.Stop] was called. This generator issues nothing more.
	ErrStopped = errors.New("snowflake: stopped")
)

// ClockError is an ErrClock with the figures of one call.
type ClockError struct {
	// Behind is how long the clock needs to reach the unit of the last ID, or the
	// floor, if it runs on undisturbed.
	Behind time.Duration
	// Tolerance is how far behind is waited for, 0 for not at all.
	Tolerance time.Duration
}

// Error names how far the clock is behind, and how far it might be.
func (e *ClockError) Error() string {
	return fmt.Sprintf("%v by %v (up to %v is waited for)", ErrClock, e.Behind, e.Tolerance)
}

// Is reports whether target is ErrClock.
func (e *ClockError) Is(target error) bool { return target == ErrClock }

// invalid returns an ErrInvalid that names the field, the value and the limit
// that the value breaks, e.g. "worker=1024: must be 0 to 1023".
func invalid(field string, value any, limit string) error {
	return fmt.Errorf("%w: %s=%v: %s", ErrInvalid, field, value, limit)
}

// quote returns text quoted and cut to a length that an error message can bear.
func quote(text string) string {
	const longest = 64
	if len(text) > longest {
		text = text[:longest] + "..."
	}
	return strconv.Quote(text)
}
