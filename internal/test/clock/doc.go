// Package clock moves the wall clock of a running program, and of that program
// alone: the machine's clock is left as it is, and the program's source too.
//
// The program is built with an overlay that replaces time.Now:
//
//	overlay, err := clock.Overlay(t.TempDir())
//	go build -overlay=<overlay> …
//
// and started with [File.Env] in its environment. [File.Set] then moves its wall
// clock, at once and in either direction.
//
// It promises:
//
//  1. Only the wall reading of time.Now moves. Its monotonic reading, timers,
//     time.Since and deadlines go on as if nothing had happened, as they do when
//     somebody sets a machine's clock.
//  2. All of the program sees it, the libraries it uses too.
//  3. Once Set has returned, every later call of time.Now has the offset.
//  4. Without LEAF_TEST_CLOCK the program runs with the true clock; with one that
//     cannot be read it panics at its first time.Now, so that no test passes with
//     a clock that does not move.
//
// It works on Linux and macOS. It does not change what the kernel says: the times
// of files stay true. The first build with an overlay compiles the standard
// library and all modules again, about a minute for cmd/leaf; later ones find
// them in Go's cache, whatever folder the overlay lies in.
package clock
