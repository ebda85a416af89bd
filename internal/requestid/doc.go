// Package requestid has the ID of a request: a text by which a line of the log is found again.
//
// A client brings one in X-Request-Id, or as the trace ID of a W3C traceparent. The server shows
// it in its reply and in what it logs of the request. It proves nothing, and nothing depends on
// it. A request without one gets one only where a line of the log needs it.
package requestid
