package bounded

import (
	"time"

	"github.com/leaf-idgen/leaf"
)

// Back-off after a failed store call: it doubles from the first pause to the
// longest. Together with a connection timeout of 250 ms the longest one keeps
// recovery within a second of the database's first accepted query (guarantee 13).
const (
	firstBackoff   = 10 * time.Millisecond
	longestBackoff = 250 * time.Millisecond
)

// Backoff returns the pause after that many failures in a row.
func Backoff(rt leaf.Runtime, failures int) time.Duration {
	d := firstBackoff << min(failures-1, 5)
	return rt.Jitter(min(d, longestBackoff))
}
