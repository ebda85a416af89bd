package idlog

import (
	"math"
	"strconv"
)

// Call is when a call for IDs began and ended, in nanoseconds of one clock, such as those
// since 1970. Begin is from before the request was sent, End from after the answer had
// arrived. The clock must be one that is never set back during the calls.
//
// In a text log it is the last field of a line, @BEGIN-END. Without a known end, End is NoEnd, and
// the field @BEGIN-.
type Call struct {
	Begin int64 `json:"begin,string"` // 1 to MaxTime
	End   int64 `json:"end,string"`   // Begin to MaxTime, or NoEnd
}

const (
	// MaxTime is the latest time of a call, in the year 2116.
	MaxTime = 1<<62 - 1

	// NoEnd is the end of a call of which no end is known. Other calls may get any ID
	// after it.
	NoEnd = math.MaxInt64

	callMark = '@'
)

const callLimit = "must be @BEGIN-END, or @BEGIN- without a known end, in nanoseconds from 1 to 4611686018427387903"

// check returns the reason why c is no call, empty if it is one.
func (c Call) check() string {
	switch {
	case c.Begin < 1 || c.Begin > MaxTime || c.End < 1 || c.End > MaxTime && c.End != NoEnd:
		return callLimit
	case c.End < c.Begin:
		return "the call ends before it begins"
	}
	return ""
}

// String returns the call's field of the text format.
func (c Call) String() string { return string(c.append(nil)) }

func (c Call) append(dst []byte) []byte {
	dst = strconv.AppendInt(append(dst, callMark), c.Begin, 10)
	dst = append(dst, '-')
	if c.End != NoEnd {
		dst = strconv.AppendInt(dst, c.End, 10)
	}
	return dst
}

// call reads "@BEGIN-END" or "@BEGIN-".
func (r *textReader) call(field []byte) (Call, error) {
	c := Call{End: NoEnd}
	limit := callLimit
	begin, n := parseID(field[1:])
	if rest := field[1+n:]; n > 0 && len(rest) > 0 && rest[0] == '-' {
		c.Begin = begin
		if rest = rest[1:]; len(rest) > 0 {
			if c.End, n = parseID(rest); n != len(rest) || c.End > MaxTime {
				c.End = 0
			}
		}
		limit = c.check()
	}
	if limit != "" {
		return Call{}, &SyntaxError{r.at, "times", shorten(field), limit}
	}
	return c, nil
}
