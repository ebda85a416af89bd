//go:build race

package sim_test

// raced says that the race detector runs, with which a seed takes ten times as long.
const raced = true
