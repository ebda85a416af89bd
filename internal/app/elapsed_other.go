//go:build !linux

package app

import "time"

var started = time.Now()

// elapsed returns the time since the program started, which no clock step changes.
// Where the monotonic clock stands still while the machine is suspended, the wall
// clock seems to jump afterwards, and has to be confirmed.
func elapsed() time.Duration { return time.Since(started) }
