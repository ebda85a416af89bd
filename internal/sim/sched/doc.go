// Package sched runs programs that use leaf.Runtime on simulated time, one step of one
// goroutine at a time, in an order that follows from one seed.
//
// A [Scheduler] owns the true time, which no process of the simulated world can read. A
// [Machine] has a wall clock and a monotonic clock of its own, which drift and freeze
// and of which the wall clock also steps. A [Process] is one life on a machine; it is
// the leaf.Runtime of what runs in it.
//
// # What it promises
//
//  1. At any moment at most one goroutine of a simulation runs, and it runs until its
//     next scheduling point: a Wait, a [Process.Boundary], its end. Code between two
//     such points is atomic, so the mutexes of an engine are never contended.
//  2. Which goroutine runs next, how long a jittered pause is, what the world does: all
//     is drawn from one generator. Two runs of one seed make the same decisions in the
//     same order, which [Scheduler.Hash] proves as far as a hash can.
//  3. Time advances only when nothing can run. A simulation that does too much at one
//     moment is a livelock and fails.
//  4. A killed process does nothing any more: its goroutines unwind with a panic of
//     this package, and whatever they call on the way panics again. What they had
//     asked of the world (a request on its way) goes on.
//  5. A time.Time of Process.Now has the wall clock and the monotonic reading that the
//     machine's clocks show, and behaves as one of time.Now does.
//
// # What it does not do
//
// A goroutine does not wait for one of another process, unless a callback of After is
// what ends the wait, as it is for a call over a network; only the world waits for
// every process. [Scheduler.Strict] checks that.
//
// It does not order what happens between two scheduling points: races inside the
// lock-free hot paths are for the stress tests with -race. A goroutine that blocks by
// any other means than the Runtime stops the whole simulation: a mutex held across a
// Wait shows as a deadlock of the Go program.
package sched
