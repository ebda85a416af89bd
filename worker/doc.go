// Package worker holds a worker ID for a snowflake generator: it claims a number
// at a registry, keeps the claim's time bound ahead of need, checks the clock, and
// issues IDs while all of that is in order.
//
// The parts:
//
//   - [Registry] is where numbers are claimed. Drivers implement it, most of them
//     by way of [Records], a small versioned store, and [NewPool], which holds the
//     rules of a pool. [Static] needs no registry.
//   - [Holder] is the engine: a leaf.Issuer that claims, renews, loses and claims
//     again by itself.
//   - [Disk] keeps the bound of a fixed number, so that a restart need not wait.
//     A leased number has no file: T suffices, and a restart takes another number.
//
// A claim is a number together with a time bound T: IDs are issued for moments
// before T only, and T is durable at the registry before the first of them. All
// moments are Unix milliseconds and whole units of the layout, rounded up.
//
// Invariants, and the rules that they follow (docs/RULES.md):
//
//  1. A number is what one atomic operation of the registry returned (guarantee 4).
//  2. Every ID lies below the T that the registry acknowledged, and below an inner
//     bound t <= T, which for a fixed number the node's own file holds durably (6, 7,
//     rule E).
//  3. A successor issues from T on, or from t if it is the same data directory, or
//     from the end of what was issued if its predecessor released the claim (6, J).
//  4. T is never deleted and only a release by its owner lowers it (rule D).
//  5. A claim belongs to a nonce that a process made for itself. A renewal that finds
//     another one, or none, stops the generator before anything else (5).
//  6. T and t stand still while the clock is below the floor, or has jumped ahead
//     of elapsed time and neither peers nor an operator confirmed it (rule F).
//  7. A registry with another layout, epoch or namespace is refused (8).
//  8. No mutex is held over a call, and every call has a deadline (11, 12).
//
// What it does not do: it cannot see that a data directory was copied, that two
// nodes were given one static number, or that a registry was wiped while clocks were
// wrong (rule L). It cannot see that a registry was set back to a backup, where T is too
// low: the administrator who restores it deletes the namespace with it, and the numbers
// wait as after a wipe. An old copy of the node's file is noticed only if the registry
// answers and the owner had renewed since. It sets no clock. It does not remember which registry
// it had a leased number from: a second one gives the same numbers, so all processes stop before
// the first of them takes its number from another registry.
package worker
