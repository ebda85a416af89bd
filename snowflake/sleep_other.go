//go:build !linux

package snowflake

import "time"

// nanosleep returns at once: the caller's timer waits.
func nanosleep(time.Duration) {}
