// Package trace sends spans to a collector of OpenTelemetry, as OTLP in JSON over HTTP.
//
// A span tells how long one call took, what it was about and how it ended. A node makes spans of
// loads, claims and administrative changes, never of an ID from memory. The format is written here
// and not taken from the SDK of OpenTelemetry, which is twelve modules (docs/adr/0035).
//
// What it does not do: it reads no configuration and samples nothing, and a span that a collector
// does not take is dropped and counted. No caller waits for a collector.
package trace
