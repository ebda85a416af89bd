package uptime

import (
	"time"

	"golang.org/x/sys/unix"
)

// Now returns the time since the machine started, including the time for which
// it was suspended (CLOCK_BOOTTIME), which no clock step changes. Go's own monotonic
// reading stands still in a suspension, so that a resumed machine would look like one
// whose wall clock jumped.
func Now() time.Duration {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &t); err != nil {
		panic("clock_gettime: " + err.Error()) // a kernel before 2.6.39 of 2011
	}
	return time.Duration(t.Nano())
}
