// Package manage is what an administrator can do: one table of operations, with their
// requests, replies and functions.
//
// A request is a plain struct, and its method run is what it does. It works on a site: a
// running node, or what a command has opened without one. [Ask] carries a request out through
// a [Backend], and its caller does not know whether that works on a site, or asks a node.
//
// It promises: (1) what is not in the table is on no socket and in no client; (2) an operation
// that only a node can carry out is refused without one; (3) a node and a command without a
// node run the same function.
//
// It opens and closes nothing, prints nothing, knows no protocol but the names in its routes,
// and issues no IDs.
package manage
