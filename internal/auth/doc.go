// Package auth compares what a client or an administrator shows with the tokens that are
// valid now. One [Tokens] serves all protocols, so that a token which is exchanged while
// the node runs is exchanged for all of them.
//
// Invariants:
//
//  1. A comparison takes the same time for every wrong token of one length.
//  2. A set that asks for a token never becomes one that asks for none: [Tokens.Replace]
//     refuses an empty list, and a set with named tokens always asks.
//  3. A named token that is revoked, and other roles of a token or a certificate, count at once,
//     also where a server has kept the [Grant] for a connection.
//
// What it does not do: it reads no files. A server may keep the access that it opened for a
// connection, as long as the client shows the same token, so a token of the configuration that was
// removed is refused from the next connection on at the latest (docs/SECURITY.md).
package auth
