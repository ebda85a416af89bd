package problem

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/leaf-idgen/leaf"
)

// ContentType is the media type of a problem.
const ContentType = "application/problem+json"

// NoStore is the Cache-Control of every reply: a cache that gave one of them a second time would repeat its IDs. Fastly
// looks at private only, and keeps a reply that just says no-store for an hour.
const NoStore = "private, no-store"

// typePrefix and a code make the member "type". It is a name, not an address.
const typePrefix = "urn:leaf:error:"

// internalCode is the code of every error outside the table.
const internalCode = "internal"

// retryAfter is what Retry-After says where the error gives no hint. Ranges arrive
// within milliseconds once the store answers, and one second is the smallest wait that
// the field can express.
const retryAfter = 1

// Error is a problem. It is an error whose text is Detail and which matches, with
// errors.Is, the sentinel that Code stands for, if it stands for one.
type Error struct {
	Type      string `json:"type"`
	Title     string `json:"title"`     // the same for every occurrence of Code
	Status    int    `json:"status"`    // HTTP status
	Code      string `json:"code"`      // stable, for programs
	Detail    string `json:"detail"`    // about this occurrence, for people
	Retryable bool   `json:"retryable"` // the same request can succeed later by itself

	// RetryAfterMilli is leaf.RetryAfter in ms, rounded up; 0: the error gives no hint.
	RetryAfterMilli int64 `json:"retry_after_ms,omitempty"`

	Allow []string `json:"-"` // methods for the field Allow of a 405
}

// Error returns the detail.
func (e *Error) Error() string { return e.Detail }

// Unwrap returns the sentinel of package leaf that belongs to the code, with its hint
// for leaf.RetryAfter if there is one; nil if no sentinel belongs to the code.
func (e *Error) Unwrap() error {
	class, _ := leaf.ClassByCode(e.Code)
	if class.Retryable && e.RetryAfterMilli > 0 {
		return leaf.Later(class.Err, e.Detail, time.Duration(min(e.RetryAfterMilli, longestHint.Milliseconds()))*time.Millisecond)
	}
	return class.Err
}

// longestHint bounds what a reply can make a client wait.
const longestHint = 10 * 365 * 24 * time.Hour

// Challenge returns the field WWW-Authenticate of a 401, "" for any other problem.
func (e *Error) Challenge() string {
	if e.Status == http.StatusUnauthorized {
		return "Bearer"
	}
	return ""
}

// RetryAfter returns the seconds that a caller should wait before it repeats the
// request, 0 if the reply makes no such promise.
func (e *Error) RetryAfter() int64 {
	if e.RetryAfterMilli > 0 {
		return (e.RetryAfterMilli-1)/1000 + 1
	}
	if e.Retryable && (e.Status == http.StatusServiceUnavailable || e.Status == http.StatusTooManyRequests) {
		return retryAfter
	}
	return 0
}

// Body returns the JSON text.
func (e *Error) Body() []byte {
	var body bytes.Buffer
	enc := json.NewEncoder(&body)
	enc.SetEscapeHTML(false) // the text quotes tag names, and people read it
	_ = enc.Encode(e)        // strings, a number and a boolean cannot fail
	return bytes.TrimSuffix(body.Bytes(), []byte("\n"))
}

// Of returns the problem for err. The detail is err's own text, except in the
// class "internal", whose cause stays inside the node. An err that is or
// wraps a problem (one that was read from another node) is passed on as it is.
func Of(err error) *Error {
	if e, ok := errors.AsType[*Error](err); ok {
		return e
	}
	class := leaf.ClassOf(err)
	e := &Error{
		Type:      typePrefix + class.Code,
		Title:     class.Title,
		Status:    class.HTTP,
		Code:      class.Code,
		Detail:    err.Error(),
		Retryable: class.Retryable,
	}
	if after := leaf.RetryAfter(err); after > 0 {
		e.RetryAfterMilli = int64((after-1)/time.Millisecond) + 1
	}
	if class.Err == nil {
		e.Detail = "leaf: internal error, the server's log has the cause"
	}
	return e
}

// Report is Of, and logs the cause of an internal error at ERROR, because the
// caller does not see it.
func Report(log *slog.Logger, err error) *Error {
	e := Of(err)
	if e.Code == internalCode {
		log.Error("internal error", "error", err)
	}
	return e
}

// NotFound is the problem of a path that no route matches.
func NotFound(path string) *Error {
	return local(http.StatusNotFound, "not_found", "No such route", false, fmt.Sprintf("leaf: no route %q", shorten(path)))
}

// MethodNotAllowed is the problem of a route that exists for other methods.
func MethodNotAllowed(method string, allow ...string) *Error {
	e := local(http.StatusMethodNotAllowed, "method_not_allowed", "Method not allowed", false,
		fmt.Sprintf("leaf: method %q is not allowed, use %s", shorten(method), strings.Join(allow, " or ")))
	e.Allow = allow
	return e
}

// TooManyConnections is the problem of a server with limit connections open.
func TooManyConnections(limit int) *Error {
	return local(http.StatusServiceUnavailable, "too_many_connections", "Too many connections", true,
		fmt.Sprintf("leaf: all %d connections are in use", limit))
}

func local(status int, code, title string, retryable bool, detail string) *Error {
	return &Error{Type: typePrefix + code, Title: title, Status: status, Code: code, Detail: detail, Retryable: retryable}
}

// shorten keeps a stranger's text from filling a reply.
func shorten(s string) string {
	const longest = 64
	if len(s) > longest {
		return s[:longest] + "..."
	}
	return s
}

// Write answers a request with the problem for err. Nothing may have been
// written before. Internal causes go to log.
func Write(w http.ResponseWriter, log *slog.Logger, err error) { Report(log, err).Write(w) }

// Write answers a request with the problem. Nothing may have been written before.
func (e *Error) Write(w http.ResponseWriter) {
	h := w.Header()
	h.Set("Content-Type", ContentType)
	h.Set("Cache-Control", NoStore)
	if s := e.RetryAfter(); s > 0 {
		h.Set("Retry-After", strconv.FormatInt(s, 10))
	}
	if c := e.Challenge(); c != "" {
		h.Set("WWW-Authenticate", c)
	}
	if len(e.Allow) > 0 {
		h.Set("Allow", strings.Join(e.Allow, ", "))
	}
	w.WriteHeader(e.Status)
	w.Write(e.Body())
}
