package sched

import (
	"fmt"
	"time"
	"unsafe"
)

// layout is that of time.Time (src/time/time.go). There is no other way to make a
// Time whose wall clock and monotonic reading differ from the real ones, and the
// engines use both, as every Go program does. If a Go release changes it, init fails.
type layout struct {
	wall uint64 // 1 bit: has a monotonic reading; 33 bits: seconds since 1885; 30 bits: nanoseconds
	ext  int64  // monotonic reading, ns
	loc  *time.Location
}

const (
	hasMonotonic = 1 << 63
	secondsFrom  = 30
)

var year1885 = time.Date(1885, 1, 1, 0, 0, 0, 0, time.UTC).Unix()

// monotonicZero keeps readings above those that time.Time takes for "none".
const monotonicZero = time.Hour

// instant returns a Time with the given wall clock and monotonic reading.
func instant(wall time.Time, mono time.Duration) time.Time {
	seconds := wall.Unix() - year1885
	if seconds < 0 || seconds >= 1<<33 {
		return wall // time.Now has no monotonic reading then either
	}
	var t time.Time
	l := (*layout)(unsafe.Pointer(&t)) //nolint:gosec // see layout
	l.wall = hasMonotonic | uint64(seconds)<<secondsFrom | uint64(wall.Nanosecond())
	l.ext = int64(mono + monotonicZero)
	l.loc = time.Local //nolint:gosmopolitan // as time.Now does
	return t
}

func init() {
	a := instant(time.Unix(1_700_000_000, 5), time.Second)
	b := instant(time.Unix(1_600_000_000, 7), time.Minute)
	if unsafe.Sizeof(a) != unsafe.Sizeof(layout{}) || a.UnixNano() != 1_700_000_000_000_000_005 || b.Sub(a) != 59*time.Second ||
		b.Round(0).Sub(a.Round(0)) != -100_000_000*time.Second+2 {
		panic(fmt.Sprintf("sched: this Go release lays time.Time out in another way: %v, %v", a, b))
	}
}
