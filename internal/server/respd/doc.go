// Package respd speaks the Redis protocol, so that an application takes IDs with the
// Redis client library that it already has.
//
//	INCR tag                     the next ID of a tag
//	INCRBY tag n                 the last of n consecutive IDs
//	HINCRBY sequence entity n    the last of the next n numbers of an entity
//	LEAF.NEXT tag [COUNT n] [TEXT] [FORMAT f]         one ID, or an array of n
//	LEAF.SNOWFLAKE [key] [COUNT n] [TEXT] [FORMAT f]  the same in snowflake mode
//	LEAF.DECODE id [LAYOUT l]    the fields of an ID of snowflake mode
//	AUTH, HELLO, CLIENT, SELECT, RESET, QUIT, PING, ECHO, INFO, COMMAND
//
// Requests are arrays of bulk strings or lines as people type them, replies RESP2 or,
// after HELLO 3, RESP3. TEXT asks for IDs as strings: a language whose numbers have
// 53 bits would round an ID of snowflake mode, and two rounded IDs can be equal. FORMAT
// asks for an opaque ID (package format), which is a string, too.
//
// # Promises
//
//  1. An ID that a client has seen was issued for this one request. What a client did
//     not see, because its connection broke or an INCRBY met a gap, is lost and not
//     issued again.
//  2. A reply to INCR, INCRBY, HINCRBY or LEAF.* is an integer, a string, or an array
//     of them only if the Issuer has issued exactly those; every failure is an error
//     reply whose first word is the class of the one table (leaf.Class.RESP). An error
//     has one line. The cause of an internal error goes to the log only.
//  3. Replies keep the order of the requests. The replies to all requests that arrived
//     together leave in one write, or one per 64 KiB, and before one of these
//     requests waits for IDs.
//  4. A request is carried out only when it has arrived in full. What cannot be a
//     request is told so once, and the connection ends.
//  5. Everything is bounded: the bytes and the arguments of a request, the time to send
//     one, an idle connection, a client that does not read, the number of connections,
//     the buffers of each. See [Config].
//  6. A client that has not shown what Config.Access asks for can do nothing but AUTH,
//     HELLO, RESET and QUIT.
//  7. After a MULTI, which is refused, nothing is carried out up to EXEC, DISCARD, RESET or
//     QUIT: no ID is issued for a transaction.
//  8. A panic of an Issuer is logged and answered as an internal error; neither the
//     process nor the connection ends.
//  9. Shutdown answers every request that has been read, or says how many connections
//     it had to cut.
//  10. INCR costs no allocation on a connection that stays with a few tags.
//
// # What it does not do
//
// It issues nothing and decides nothing: it translates to the leaf.Issuer and the
// leaf.Sequencer that Config.Access gives to a client. It stores nothing, so there is no
// GET, SET, DEL or HGET, no transaction and no publishing. A client's disconnection does not cancel the
// request that it waits for. The package is part of the program leaf: its Go API may
// change with every release.
package respd
