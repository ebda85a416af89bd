// Package meter counts the requests of each protocol and times some of them, and chooses the
// tags that metrics name.
//
// [Access] stands in front of the gate, once for each protocol, so a new protocol is counted
// without a line of its own. What it costs a request in stock is one atomic addition: each
// connection counts in one of several shards, and few requests are timed, because to read a
// clock twice takes longer than to issue an ID. Timed are one request in [Sample] of a busy
// node, and a few after each scrape.
package meter
