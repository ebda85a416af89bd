// Package snowflake makes 64-bit IDs from a clock, a worker ID and a counter. A
// [Layout] says which bits mean what, a [Generator] issues the IDs of one worker. It
// imports the standard library only, starts no goroutine and keeps no timer.
//
// # What it promises
//
//  1. The IDs of one Generator increase strictly in the order in which they are
//     taken, over all goroutines, whatever the clock does.
//  2. No ID has a unit below the first whole unit of Config.Floor.
//  3. No ID has a unit at or above the bound that was in force when it was taken
//     (guarantee 6). The bound never falls. With 2 this makes IDs unique among
//     generators of one worker ID: each starts where the bound of the one before ended.
//  4. Once [Generator.Stop] has returned t, no ID is taken any more, and every ID
//     ever taken has a unit that starts before t.
//  5. A clock that steps back is waited for up to Config.Tolerance; beyond it, calls
//     fail with [ErrClock] until the clock has passed the position again, or, with
//     [UseReserved], go on below the bound at the pace of elapsed time. The clock
//     that counts is the wall clock: time does not run on by the monotonic clock alone.
//  6. An ID is never negative. Past the end of the layout there is [ErrOverflow].
//  7. No caller spins or waits under a lock: there is no lock. A wait ends with its
//     context, within 2 ms on Linux.
//
// # How an ID is taken
//
// All state is one word: whether the generator is stopped, the unit of the last ID,
// and the next number within it. The word only ever grows, and each value of it is
// handed to one caller: that is why no ID repeats. See generator.go for the
// interleavings.
//
// The first number of a unit is random (see docs/adr/0009), so that the IDs of a
// quiet service spread evenly over any number of tables; after a unit that was
// used up it is 0, so that a busy one loses nothing.
//
// # What it does not do
//
// It does not know which other node has the same worker ID, and it remembers nothing
// over a restart: package worker claims the ID, keeps Floor and bound durable, and
// raises the bound. It does not judge a clock that runs ahead; the bound limits what
// that can do. It does not hide how many IDs were issued within one unit.
package snowflake
