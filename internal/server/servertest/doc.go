// Package servertest is the behaviour that every protocol has in common, as tests: HTTP,
// gRPC, the Redis protocol and the Go client run the same cases.
//
// A case scripts what stands behind the server, a [leaf.Access] with issuers that do as
// the case says, and looks at it from the other end of the wire through a [leaf.Issuer].
// Between the two nothing may get lost:
//
//  1. IDs arrive as they were issued, all of them, in order, up to 2^63-2.
//  2. Issuers are asked with exactly the tag and the number that the caller gave.
//  3. Every row of the table of errors arrives as itself ([leaf.ClassOf]), with its text
//     and with [leaf.RetryAfter] to the millisecond. The cause of an internal error does
//     not arrive.
//  4. A request that is wrong is refused without asking an issuer, and so is a client
//     that Access refuses.
//  5. A panic of an issuer is an internal error, and the next request works.
//  6. IDs in a format arrive as the texts of exactly the IDs that were issued. A format that the
//     server cannot write is refused without asking an issuer.
//  7. A caller's deadline ends its call.
//
// It does not test what a protocol has for itself (syntax, limits of sizes and times,
// start and stop), nor the engines.
package servertest
