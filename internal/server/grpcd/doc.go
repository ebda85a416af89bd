// Package grpcd is the gRPC server: leaf.v1.LeafService of package leafpb, the health
// service grpc.health.v1, and reflection, on grpc-go's own transport. Administration is
// HTTP with JSON, on listeners of its own (package internal/server/admin).
//
// # Promises
//
//  1. Next and every answer of Stream hold exactly as many IDs as asked for, or an error
//     and none. Answers of a stream have the order of its requests.
//  2. A stream has one request under way. Those behind it wait in the stream's window of
//     64 KiB, and the client's sends wait behind that, so a request that waits holds up
//     its own stream only, and a client that sends or does not read costs bounded memory.
//  3. Errors are those of the one table (package leaf): the status code with an ErrorInfo
//     and, where a wait is known, a RetryInfo; in a stream the message Error, after
//     which the stream goes on. The exceptions are what grpc-go itself answers to a
//     message or metadata beyond its limit, or to a method that does not exist.
//  4. The deadline of a call reaches the Issuer, and so does its end.
//  5. Everything is bounded: connections, streams of each, the sizes of a message and of
//     metadata, the time to connect, an idle connection, a dead peer, a stream whose
//     client does not read. See [Config].
//  6. A panic in a handler is logged and answered as internal; neither the process nor
//     the connection nor, in Stream, the stream ends.
//  7. Shutdown tells every client to go elsewhere, answers the calls under way, ends a
//     stream with OK once it rests, and one that never does with not_ready between two
//     answers. It says when it had to cut calls off.
//  8. The header of a call and a stream shows the cluster's ID. A stream that began before
//     the node knew it ends with not_ready in place of the next answer.
//  9. An answer with IDs of a tag in strict order shows where the tag is issued, and no other answer
//     does.
//
// # What it does not do
//
// It issues nothing and decides nothing: it asks [leaf.Access] for the issuers of each
// call and of each stream and translates. Every client may call health and
// reflection, with or without credentials; only promise 5 limits them. The package is
// part of the program leaf: its Go API may change with every release.
package grpcd
