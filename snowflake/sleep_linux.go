package snowflake

import (
	"syscall"
	"time"
)

// nanosleep blocks the thread for d, or less if a signal arrives.
func nanosleep(d time.Duration) {
	t := syscall.NsecToTimespec(int64(d))
	_ = syscall.Nanosleep(&t, nil) // fails only by ending early
}
