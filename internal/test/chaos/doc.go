// Package chaos runs the real program on real servers, breaks both while clients
// ask for IDs, and afterwards looks at every ID that a client was given.
//
// A run has a topology (which database, which registry, with or without a cluster
// fence), three processes of "leaf serve" that reach each server through a proxy
// of their own, and clients that ask each node for IDs one request after another,
// at a steady rate. A nemesis draws faults from a seed, one after the other and
// now and then two at once, heals each, and waits until every client is served
// again. At the end all is quiet; then the IDs are verified and a report is made.
//
// It promises:
//
//  1. Every reply that a client read is in a log before the verification begins,
//     and every log is verified: no ID twice per tag and mode, IDs of one process
//     increasing, the fields of snowflake IDs near the true time, and no worker ID
//     used by two processes in turns.
//  2. Every request that should have been sent is counted, from the moment it was
//     due: one that had to wait for the request before it is late by that wait.
//  3. A fault is over when it is healed and every client of every node has been
//     served since; that this takes longer than [Config].Recovery fails the run.
//  4. A fault kind of the topology that never came in a run that was long enough
//     fails the run: such a run proves nothing about it.
//  5. What a topology cannot keep is declared in it and shown, not hidden: without
//     a cluster fence a database that lost commits repeats IDs between nodes, and
//     the report has the number.
//  6. No process, mount or folder outlives the run, except the folder with the
//     logs of a run that failed, whose path is in the report.
//
// The seed determines which faults come, on whom, for how long and in which order.
// It does not determine the moment within the program: processes and kernels have
// no seed. A run that failed is repeated with its seed and may have to be repeated
// several times; the simulation (package sim) is what replays exactly.
//
// It needs Linux: a process that dies with its parent, 127.0.0.0/8, and for full
// disks root and tmpfs.
package chaos
