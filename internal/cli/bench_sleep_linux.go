package cli

import (
	"syscall"
	"time"
)

// shortSleep sleeps for wait, or less. The runtime's timers are up to 1 ms late when
// the process is idle, which would count as latency of the server. It cannot be
// cancelled, and is therefore short.
func shortSleep(wait time.Duration) {
	const longest = 5 * time.Millisecond
	ts := syscall.NsecToTimespec(int64(min(wait, longest)))
	_ = syscall.Nanosleep(&ts, nil) // woken early, the caller sleeps again
}
