// Package world is what surrounds the nodes of a simulation: the network, databases,
// registries, the cluster fence, disks, and what can go wrong with each of them.
//
// Everything here is a decorator or a small model that implements the engines' own
// interfaces (segment.Store, fence.Cluster, fence.Disk, worker.Records,
// worker.Registry, worker.Disk); the engines under test are the real ones.
//
// # How a call travels
//
// A call to a server goes through a [Link], one node's way to one server: the request
// takes some time, the effect happens at the server at one moment, the reply takes some
// time. Each part can be lost, late or doubled; the caller can die at any point, and the
// request goes on without it. Disks are not behind a link: they belong to the machine.
//
// # What it promises
//
//  1. An effect happens at one moment of the simulation, on a server that is up.
//  2. Whatever is drawn comes from the scheduler's generator.
//  3. A fault is counted by its name when it takes effect, not when it was planned
//     ([Faults]): a run in which a fault never fired says so.
package world
