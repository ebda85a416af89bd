//go:build race

package cli_test

// raced says that the race detector runs.
const raced = true
