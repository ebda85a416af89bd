package requestid

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"log/slog"
	"net/http"
)

// Names of the fields of HTTP, and in lower case of the metadata of gRPC.
const (
	Field         = "X-Request-Id"
	TraceField    = "Traceparent"
	Metadata      = "x-request-id"
	TraceMetadata = "traceparent"
)

// longest bounds an ID in bytes.
const longest = 128

// Of returns the ID that a request brings, a part of its arguments: id if it is sane, otherwise
// the trace ID in traceparent, and nothing if that has none. It does not allocate.
func Of[Text ~string | ~[]byte](id, traceparent Text) Text {
	if sane(id) {
		return id
	}
	return traceOf(traceparent)
}

// sane reports whether an ID may stand in a field of HTTP and in the log as it is.
func sane[Text ~string | ~[]byte](id Text) bool {
	if len(id) == 0 || len(id) > longest {
		return false
	}
	for i := range len(id) {
		switch c := id[i]; {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9':
		case c == '-', c == '.', c == '_', c == '~', c == ':', c == '/', c == '+', c == '=', c == '@', c == ';':
		default:
			return false
		}
	}
	return true
}

// traceOf returns the trace ID of VERSION-TRACE-PARENT-FLAGS, in lower-case hexadecimal digits
// of 2, 32, 16 and 2 characters. A later version than 00 may have more behind a hyphen.
func traceOf[Text ~string | ~[]byte](t Text) (none Text) {
	const trace, parent, flags, end = 3, 36, 53, 55
	if len(t) < end || t[trace-1] != '-' || t[parent-1] != '-' || t[flags-1] != '-' || t[0] == 'f' && t[1] == 'f' {
		return none
	}
	if len(t) > end && (t[0] == '0' && t[1] == '0' || t[end] != '-') {
		return none
	}
	zeros := 0
	for i := range end {
		switch c := t[i]; {
		case i == trace-1, i == parent-1, i == flags-1:
		case c == '0':
			if trace <= i && i < parent-1 {
				zeros++
			}
		case '1' <= c && c <= '9', 'a' <= c && c <= 'f':
		default:
			return none
		}
	}
	if zeros == parent-1-trace {
		return none
	}
	return t[trace : parent-1]
}

// New returns an ID that no other request has. It has the form of a trace ID.
func New() string {
	var id [16]byte
	_, _ = rand.Read(id[:]) // never fails
	return hex.EncodeToString(id[:])
}

type (
	key      struct{}
	traceKey struct{}
)

// With returns ctx with the ID of a request; ctx itself for "".
func With(ctx context.Context, id string) context.Context {
	if id == "" {
		return ctx
	}
	return context.WithValue(ctx, key{}, id)
}

// ID returns the ID in ctx, "" if there is none.
func ID(ctx context.Context) string {
	id, _ := ctx.Value(key{}).(string)
	return id
}

// withTrace returns ctx with the traceparent of a request; ctx itself for one that is not sane.
func withTrace(ctx context.Context, traceparent string) context.Context {
	if traceOf(traceparent) == "" {
		return ctx
	}
	return context.WithValue(ctx, traceKey{}, traceparent)
}

// Parent returns the trace ID and the span ID of the traceparent that a request over HTTP has
// brought, "" if it brought none.
func Parent(ctx context.Context) (trace, span string) {
	const spanAt, spanEnd = 36, 52
	t, _ := ctx.Value(traceKey{}).(string)
	if t == "" {
		return "", ""
	}
	return traceOf(t), t[spanAt:spanEnd]
}

// Log returns log with the ID in each line; log itself for "".
func Log(log *slog.Logger, id string) *slog.Logger {
	if id == "" {
		return log
	}
	return log.With("request", id)
}

// Single returns the only value of a field, "" if there is none or several: two of them may be
// meant for different readers.
func Single(values []string) string {
	if len(values) != 1 {
		return ""
	}
	return values[0]
}

// Show returns r with its ID in its context, and puts the ID into the reply. A request that
// brings none gets one if needed.
func Show(w http.ResponseWriter, r *http.Request, needed bool) *http.Request {
	id := Of(Single(r.Header[Field]), Single(r.Header[TraceField]))
	if id == "" && needed {
		id = New()
	}
	if id == "" {
		return r
	}
	w.Header()[Field] = []string{id}
	return r.WithContext(withTrace(With(r.Context(), id), Single(r.Header[TraceField])))
}
