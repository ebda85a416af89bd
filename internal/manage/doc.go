// Package manage says what an administrator can do: the requests, their replies, and what
// they do to the databases of tags, to a registry of worker IDs and to a directory of nodes.
//
// The command line, the administrator's HTTP interface with its client (package
// internal/server/admin) and the node (package app) share these types, so an option has
// one name, one JSON field and one meaning. A running node and a command without a node
// change rows with the same code.
//
// It opens and closes nothing, prints nothing, knows no protocol and issues no IDs.
package manage
