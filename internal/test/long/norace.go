//go:build !race

package long

// Raced says that the race detector runs, which makes our code three to ten times slower.
const Raced = false
