// Package app puts a node together: wiring and lifecycle. It is the
// only package that knows engines, drivers and servers at once.
//
// # Lifecycle
//
// [New] opens and binds everything or nothing: data directory (locked), stores,
// registry of worker IDs, engines, HTTP listener, admin socket. [App.Start] serves,
// [App.Stop] drains within a deadline, returns unused IDs and the worker ID, and
// releases the lock last. [Run] is the three in a row.
//
// It promises:
//
//  1. While an App exists, no other process uses its data directory.
//  2. A node whose database or registry does not answer starts, answers 503, is not
//     ready, and serves once it is back; the mode that does not need it serves
//     meanwhile. What can never be used (no table, another tag rule, a registry of
//     another layout or namespace) ends the start.
//  3. A node is ready if every enabled mode issues. A mode that is off answers 501.
//     Nothing is issued before it is known what an operator has switched off, for a
//     bounded time where it cannot be known (docs/LIMITS.md).
//  4. Stop returns by its deadline. What was not returned by then is lost, never
//     repeated.
//  5. No password is logged or printed.
//  6. In a shared registry a node has an address that other machines can tell from
//     their own (address.go).
//  7. A registry counts as new, and is not waited for, only if this very start or a
//     command since the last one made its file in a data directory that never had a
//     worker ID (unused.go).
//
// # Administration
//
// [App.Backend] and [Open] give the commands one interface (manage.Backend): the node's own,
// the client of a running node, or what is opened without a node: the databases ([Stores]),
// the [Registry] of worker IDs, the [Directory] of nodes. Without a node the fence of the data
// directory and of the cluster still hold: issuing and repairing need the lock, and a registry
// needs it where it lies in the data directory. [OpenEndpoint] is the client of a node of another machine, and never anything else.
//
// It does not parse command lines (package cli), does not read the configuration
// (package config) and does not issue IDs (packages segment and worker).
package app
