// Package sim runs the real engines, segment and worker, in one process on simulated
// time, network, servers and disks, breaks all of that as a seed says, and checks that
// no ID is issued twice. `make sim SEEDS=n` runs it; docs/PROOF.md explains it.
//
// # One run
//
// [Run] draws from its seed which modes run, how the servers and nodes are set up, which
// faults strike when, and what clients ask for. Three nodes or more live through 50
// simulated minutes of faults and ten of calm. A failing seed fails again, in the same
// way: the whole order of events follows from it (package sched).
//
// # Invariants, checked as IDs are issued
//
//  1. No ID twice, ever, per mode and tag.
//  2. Per node and tag, the IDs of a process increase, and those of its next process
//     are larger (segment mode, with the node's disk in order).
//  3. A snowflake ID lies below a T that the registry held for its number before, and
//     at or above the T of the number's owner before, if that was not released.
//  4. Nothing waits for ever: a livelock, a deadlock, or a call that outlives its
//     deadline by more than a grace fails the run.
//  5. When faults end, every tag and every number that can be served is served within a
//     bound, without an alarm that no operator would act on.
//  6. What the cache of the Go client hands out had arrived, and is handed out once for
//     each time that it arrived; after its Close the rest is counted.
//  7. Waste is bounded: numbers reserved and never issued are explained by the ranges
//     that crashes, unknown outcomes and refusals may cost.
//  8. In the calm, without an operator: a right node starts within a bound although the
//     clock of one peer of several is an hour off, and a lone node serves within a bound
//     after its clock jumped, and after it stepped back.
//  9. A node that merged its fences after the cluster fence had lost something issues
//     nothing above the fence's entry. From then on no ID of the node may repeat because
//     of that loss.
//  10. A call for a tag in strict order gets larger IDs than every call that ended before it began, by
//     true time and whatever nodes they asked, unless the tag's row went back. Runs with such tags are a
//     mode of their own ("order"), which no seed draws.
//  11. A number of a period (rule Y) is not issued by a call that begins after the period has ended by the node's
//     clock, or after the node has read that the row is in a later one; nor more than an hour before the period
//     begins by the node's clock, or a minute by the database's. Such runs are a mode of their own ("period"), which
//     no seed draws.
//  12. A call for an entity of a sequence gets larger numbers than every call for it that ended before it began, no
//     number twice, and none below a skip that had ended, or below the end of a repair. A process stops now and then
//     between a number and its answer. Such runs are a mode of their own ("sequence"), which no seed draws: its tags
//     in strict order are the rows of two sections.
//
// # Operators
//
// Each mode has an operator who looks at the alarms now and then, and does what their
// texts say with no better knowledge (rule S): repairs tags, confirms and sets clocks,
// frees numbers, restarts nodes, deletes the namespace of a registry whose worker IDs lie
// in the future. An alarm that outlives its cure fails the run.
//
// # What cannot hold
//
// Some faults leave no trace that a node could notice (rule L, docs/GUARANTEES.md).
// They are drawn too, and an [AllowedViolation] says for each which IDs may repeat between whom.
// A repetition that is not allowed fails the run; an allowed violation that never shows in a long
// run is reported, because then the documents promise too little.
package sim
