// Package manage says what an administrator can do: the requests, their replies, and the
// interfaces of the node, the stores and the registry that answer them.
//
// The command line, the administrator's HTTP interface and its client (package
// internal/server/admin) and the node (package app) share these types, so an option has
// one name, one JSON field and one meaning.
//
// It opens nothing, prints nothing and knows no protocol.
package manage
