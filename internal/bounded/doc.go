// Package bounded runs what may hang: calls of a store with a deadline, and groups of
// goroutines whose end can be waited for. All waits are on a leaf.Runtime, so that a
// simulation runs them on its own clock.
//
//  1. Do returns at most Grace after its deadline, whatever the function does.
//  2. A result that arrives later is dropped.
//  3. A panic of the function is an error of the call.
package bounded
