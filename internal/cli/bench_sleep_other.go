//go:build !linux

package cli

import "time"

// shortSleep sleeps for wait, or less.
func shortSleep(wait time.Duration) {
	const longest = 5 * time.Millisecond
	<-time.After(min(wait, longest))
}
