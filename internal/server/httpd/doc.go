// Package httpd is the public HTTP server: the two ID routes of the Java server, IDs of
// several tags in one request, the Java server's monitor paths, the two health checks,
// the clock for other nodes, and metrics.
//
//	GET /api/segment/get/{tag}      one ID as bare digits, text/plain
//	GET /api/snowflake/get/{key}    the same for the other mode
//	    ?count=n                    n IDs, 1 to leaf.MaxBatch, each a line that ends in a newline
//	    ?format=opaque-base62       IDs in a format of package format
//	    Accept: application/json    bare digits without count, {"ids":["1","2"]} with it
//	POST /v1/next                   {"requests":[{"tag":"a","count":3},{"mode":"snowflake"}]}: ranges
//	                                of IDs per entry, texts in its "format", or its error; up to 100 entries
//	GET /cache, /db                 JSON: the buffers in memory, the rows of the database
//	GET /decodeSnowflakeId?snowflakeId=n
//	                                JSON: the fields of an ID, as the Java server shows them
//	GET /v1/snowflake/decode?id=n   the same for programs
//	GET /v1/snowflake/range?from=t&to=t
//	                                {"lo":"1","hi":"2",...}: the IDs of that time; without to of one unit
//	GET /v1/clock                   {"unix_ms":n}, the wall clock of this machine
//	GET /metrics                    what Config.Metrics serves
//	GET /openapi.json               all of this as an OpenAPI 3.1 document
//	GET /healthz                    200 while the server serves
//	GET /readyz                     200 if a mode serves, or 503; JSON with each mode's state and
//	                                the reasons; ?mode=segment or snowflake asks for that mode
//
// Beyond the health checks, the clock, the metrics and the document, every request needs what
// Config.Access wants to see: a token in the field "Authorization: Bearer", the client's
// own name in the field Leaf-Client, its certificate. A 401 says so.
//
// A tag is one path segment, percent-decoded once, and nothing about it is
// normalised: %2F, "..", and a trailing dot belong to the name. One slash behind the
// path does not count, and an ID route ignores query parameters other than count and format,
// as in the Java server. HEAD is not allowed there: it would burn an ID.
// docs/MIGRATION.md compares the two servers request by request.
//
// POST /v1/next is refused as a whole, and takes no ID, if any part of it is wrong; what
// an issuer says about one entry is the answer to that entry, beside the IDs of the
// others. IDs are strings, because JavaScript rounds numbers beyond 2^53; "hi" is the
// first number that is no longer part of the range. Entries of one tag are answered in
// their order, those of different tags do not wait for each other.
//
// # Two paths, one behaviour
//
// Almost every request is the same small GET. Each connection starts on the fast
// path, which answers such a GET if it understands every byte of its head (what
// that means stands at parseHead). The first request that it does not understand takes
// the connection to net/http, with all bytes not yet answered, and it stays there:
// a way back would need to know how far ahead net/http has read. A token and a client
// name stay on the fast path as long as there is no space in them; Access is asked again
// when they differ from those of the request before. Both paths call
// the same handlers, and FuzzFastPathVsNetHTTP holds their replies equal byte for
// byte. docs/adr/0003 has the measurements.
//
// # Promises
//
//  1. Every error is problem+json with the status and code of the one table
//     (package problem). The exceptions are what net/http itself answers to bytes
//     that are no valid HTTP request (400, 431, 501, 505: text/plain, then close),
//     and to plain HTTP on a TLS port.
//  2. A mode that is not enabled never answers 2xx.
//  3. Replies keep the order of the requests. A reply to a pipelined request may
//     wait for those after it that arrived in the same packet, as long as their
//     IDs are in memory, and not for one that waits for IDs.
//  4. Everything is bounded: the time for a head in total, the size of a head, an
//     idle connection, a client that does not read, the number of connections.
//     See [Config] for limits and what a client sees beyond them.
//  5. A panic in a handler is logged and answered with 500; neither the process
//     nor the connection ends.
//  6. No ID is given to a client that Config.Access refuses; the health checks, the
//     clock, the metrics and the document never ask it.
//  7. openapi.json says what the server does: TestOpenAPI compares routes, statuses,
//     codes, schemas and examples with real replies.
//  8. Shutdown answers every request whose head was read, or says how many
//     connections it had to cut.
//  9. A client that compares lengths takes no reply with IDs that was cut off for a whole one,
//     also over HTTP/1.0, and none is continued by another reply: Range is refused.
//
// # What it does not do
//
// It issues nothing and decides nothing: it translates HTTP to [leaf.Issuer] and
// back. It bounds no Issuer: one that may wait longer than Config.WriteTimeout
// waits for a client that gets no reply. On the fast path a client's
// disconnection does not cancel the context of its request. There is no HTTP/2, also
// over TLS; a proxy in front can add it. The package is part of the program leaf:
// its Go API may change with every release.
package httpd
