package idlog

import (
	"fmt"
	"math"
	"strconv"
)

// Record is the IDs Lo to Hi, both included, of Key.
type Record struct {
	Key string `json:"key"`       // at most MaxKey bytes, of any content; may be empty
	Lo  int64  `json:"lo,string"` // at most Hi
	Hi  int64  `json:"hi,string"`

	// Call is when the call began that got the IDs, and when its answer was there. The
	// zero Call says that the log has no times.
	Call Call `json:"call,omitzero"`
}

// MaxKey is the longest key, in bytes.
const MaxKey = 1024

// Len returns the number of IDs in r. The range of all of int64 has one more than a
// uint64 can hold; its length is given as the largest uint64.
func (r Record) Len() uint64 { return length(r.Lo, r.Hi) }

// check returns the reason why r cannot be logged.
func (r Record) check() error {
	switch {
	case len(r.Key) > MaxKey:
		return fmt.Errorf("idlog: key of %d bytes, limit %d", len(r.Key), MaxKey)
	case r.Hi < r.Lo:
		return fmt.Errorf("idlog: range %d to %d: ends before it begins", r.Lo, r.Hi)
	case r.Call != (Call{}):
		if limit := r.Call.check(); limit != "" {
			return fmt.Errorf("idlog: times %v: %s", r.Call, limit)
		}
	}
	return nil
}

// String returns the record's line of the text format.
func (r Record) String() string { return string(appendLine(nil, r)) }

// Place is where a record stands.
type Place struct {
	File   string `json:"file"`
	Line   int64  `json:"line,omitempty"` // from 1; 0 in the binary format, which has no lines
	Offset int64  `json:"offset,string"`  // bytes before the record
}

// String returns "FILE:LINE", or "FILE@OFFSET" in the binary format.
func (p Place) String() string {
	if p.Line > 0 {
		return p.File + ":" + strconv.FormatInt(p.Line, 10)
	}
	return p.File + "@" + strconv.FormatInt(p.Offset, 10)
}

// length is the number of values from lo to hi, both included.
func length(lo, hi int64) uint64 { return sum(uint64(hi)-uint64(lo), 1) }

// sum adds without passing the largest uint64: a count stops there.
func sum(a, b uint64) uint64 {
	if a > math.MaxUint64-b {
		return math.MaxUint64
	}
	return a + b
}
