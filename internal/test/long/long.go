// Package long tells tests whether make test-long runs them.
package long

import "os"

// Asked reports whether LEAF_LONG=1 asks for the full loads (make test-long) instead
// of their short versions.
func Asked() bool { return os.Getenv("LEAF_LONG") == "1" }

// Load returns full if make test-long asks for it, and short otherwise.
func Load[T any](short, full T) T {
	if Asked() {
		return full
	}
	return short
}
