//go:build !linux

package uptime

import "time"

var started = time.Now()

// Now returns the time since the program started, which no clock step changes.
// Where the monotonic clock stands still while the machine is suspended, the wall
// clock seems to jump afterwards, and has to be confirmed.
func Now() time.Duration { return time.Since(started) }
