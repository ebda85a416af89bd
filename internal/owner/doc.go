// Package owner decides which node serves a tag in strict order: one node at a time, its owner.
//
// Tags are hashed to slots ([Of]), a fixed number for the cluster. Each node has a session, which it
// renews in a registry that the nodes share, and each slot has a record there that names the session
// of its owner. Both are stored as worker IDs are, in a [worker.Records]: a write counts only if the
// record is as the writer has read it. [Slots] is a node's part: it renews its session, claims its
// share of the slots, and knows who has the others. A [Term] is one time of owning one slot.
//
// Who should have a slot follows from the sessions alone, by rendezvous hashing with weights. So the
// nodes agree without talking, and a node that joins or leaves moves only its own share.
//
// The promises:
//
//  1. At most one term of a slot is valid at any moment. A caller that takes a number first, and then
//     finds the term valid, has taken it before any later term of the slot began.
//  2. A term is valid for a lease after the renewal that confirmed it was sent, by a clock of the node
//     that no step changes and that counts suspensions, and no longer. The check needs no registry and
//     no lock.
//  3. A node takes over the slot of another only when it has seen the session of that node unchanged
//     for the lease and a margin, by its own monotonic clock, and has ended that session in the
//     registry; or when that node gave the slot away.
//  4. What the registry has lost is waited for: a slot with a record that went back, or of a session
//     that is not there, is taken when it was seen so for the lease and the margin. One without a
//     record first gets one that names no owner.
//  5. A term that has ended never begins again. The node that gets the slot back begins a new one, so
//     that what it holds from the term before is dropped.
//  6. A planned move, such as a drain or a node that joins, ends the term first, and then names the
//     next owner in the same record. No caller waits for a lease.
//
// What it does not do: it issues nothing, forwards nothing, and keeps no connection between nodes. A
// registry that loses an acknowledged write may name two owners for at most a lease: order is lost
// then, not uniqueness, which never rests on owners.
package owner
