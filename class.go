package leaf

import "errors"

// Class is what an error means to a caller on every protocol.
type Class struct {
	Err       error  // the sentinel; nil for the row "internal"
	Code      string // stable machine-readable code, e.g. "unknown_tag"
	HTTP      int    // HTTP status (RFC 9110)
	GRPC      int    // gRPC status code number (google.rpc.Code)
	RESP      string // first word of a Redis protocol error
	Retryable bool   // whether the same request can succeed later by itself
	Title     string // one line for people, the same for every occurrence
}

// classes is the one table that maps sentinels to protocols. Order matters only
// for errors that wrap two sentinels: the first row wins.
var classes = []Class{
	{ErrBadRequest, "bad_request", 400, 3, "ERR", false, "The request is not valid"},
	{ErrUnauthenticated, "unauthenticated", 401, 16, "NOAUTH", false, "Authentication is required"},
	{ErrForbidden, "forbidden", 403, 7, "NOPERM", false, "A role is missing"},
	{ErrBlocked, "blocked", 403, 7, "BLOCKED", false, "Switched off by an operator"},
	{ErrUnknownTag, "unknown_tag", 404, 5, "UNKNOWNTAG", false, "No such tag"},
	{ErrThrottled, "throttled", 429, 8, "THROTTLED", true, "Too many requests"},
	{ErrRegress, "regress", 503, 9, "REGRESS", false, "The tag is latched: its store went backwards"},
	{ErrInvalidRow, "invalid_row", 503, 9, "INVALIDROW", false, "The tag's row is outside its limits"},
	{ErrOverflow, "overflow", 503, 11, "OVERFLOW", false, "The tag's number space is used up"},
	{ErrClock, "clock", 503, 14, "CLOCK", true, "The clock cannot be trusted"},
	{ErrExhausted, "exhausted", 503, 14, "EXHAUSTED", true, "No IDs in stock, retry"},
	{ErrNotReady, "not_ready", 503, 14, "NOTREADY", true, "Not ready, retry"},
	{ErrConflict, "conflict", 409, 9, "CONFLICT", false, "The current state forbids this change"},
	{ErrDisabled, "disabled", 501, 12, "DISABLED", false, "This mode is not enabled"},
}

// internal is the class of everything that is not in the table.
var internal = Class{nil, "internal", 500, 13, "ERR", false, "Internal error"}

// ClassOf returns the row for err, the row "internal" if none matches.
func ClassOf(err error) Class {
	for _, c := range classes {
		if errors.Is(err, c.Err) {
			return c
		}
	}
	return internal
}

// ClassByCode returns the row with this code, for clients that read an error
// back from a wire; ok is false for an unknown code.
func ClassByCode(code string) (c Class, ok bool) {
	for _, c := range classes {
		if c.Code == code {
			return c, true
		}
	}
	return internal, code == internal.Code
}

// Classes returns a copy of the whole table, for documents and completeness tests.
func Classes() []Class { return append(append([]Class(nil), classes...), internal) }
