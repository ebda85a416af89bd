// Package discovery is how clients find the nodes of a cluster: a node publishes a
// [Node] in a [Directory], again and again ([Announcer]), and a client lists it.
//
// A directory stands in the registry that the cluster has anyway: a database, etcd or
// ZooKeeper. Nothing about uniqueness depends on it: a list that is old, empty or wrong
// costs time, never an ID that is issued twice.
//
// Promises:
//
//  1. An entry ends by itself: a node that is gone is no longer listed after its time to
//     live, and none that renews in time is missing.
//  2. A node that is drained removes its entry before it stops serving, and no call that
//     was under way puts it back ([Announcer.Withdraw]).
//  3. What a directory holds is validated as it is read: an entry that cannot be one is
//     left out of the list and named in the error log, never passed on ([Reader]).
//  4. An entry may have fields that this version does not know: nodes of a newer version
//     stay visible to older clients.
//
// What it does not do: it does not watch. A client asks every few seconds; a list of
// some hundred nodes is small, and a poll behaves the same on every registry. And it
// does not say that a node serves: clients find that out by asking it.
package discovery
