package idlog

import (
	"errors"
	"fmt"
	"strconv"
)

var (
	// ErrBroken matches the error of a log that cannot be read as one: a line that is
	// no record, or damage that is not a torn tail. It is a [*SyntaxError].
	ErrBroken = errors.New("idlog: broken log")

	// ErrNoSpace matches the error of a check that needs a larger temporary file than
	// the disk has room for.
	ErrNoSpace = errors.New("idlog: not enough disk space")

	// ErrManyKeys matches the error of a check whose keys do not fit into its memory.
	ErrManyKeys = errors.New("idlog: too many keys for the memory limit")
)

// SyntaxError says what in a log is no record. It matches [ErrBroken].
type SyntaxError struct {
	Place
	Field string // what it should have been: "ID", "line", "block checksum"
	Value string // what stands there, shortened
	Limit string // what is allowed
}

// Error returns one line: place, field, value, limit.
func (e *SyntaxError) Error() string {
	return fmt.Sprintf("%v: %s %s: %s", e.Place, e.Field, e.Value, e.Limit)
}

// Is makes the error match ErrBroken.
func (e *SyntaxError) Is(target error) bool { return target == ErrBroken }

// Torn is the end of a log whose writer was stopped in the middle of a record.
type Torn struct {
	Place         // where the tail begins
	Bytes  int64  `json:"bytes,string"` // that were not read as IDs
	Reason string `json:"reason"`
}

// String returns one line.
func (t *Torn) String() string {
	return fmt.Sprintf("%v: torn tail of %d bytes: %s", t.Place, t.Bytes, t.Reason)
}

// shorten quotes text that came from a file for an error.
func shorten(text []byte) string {
	const limit = 40
	if len(text) > limit {
		return strconv.Quote(string(text[:limit])) + "..."
	}
	return strconv.Quote(string(text))
}
