package httpd

import (
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/leaf-idgen/leaf/internal/requestid"
	"github.com/leaf-idgen/leaf/internal/server/problem"
)

const textPlain = "text/plain"

// contentTypeText is the Content-Type of IDs.
const contentTypeText = textPlain + "; charset=utf-8"

// instant is a reading of the coarse clock. When the pointer to it has changed, time went on:
// a comparison of pointers replaces a reading of the clock.
type instant struct {
	date string // the header field Date, with its CRLF
}

func newInstant(t time.Time) *instant {
	return &instant{date: "Date: " + t.UTC().Format(http.TimeFormat) + "\r\n"}
}

// clock holds the current instant. Its owner renews it.
type clock struct{ now atomic.Pointer[instant] }

func (c *clock) tick(t time.Time) { c.now.Store(newInstant(t)) }

// The replies of the fast path have the fields that net/http would send, in its
// order, so that a test can compare the two byte for byte.

// appendText appends a 200 with body.
func appendText(dst, body, id []byte, at *instant, last bool) []byte {
	dst = append(dst, "HTTP/1.1 200 OK\r\nCache-Control: "+problem.NoStore+"\r\nContent-Type: "+contentTypeText+"\r\n"...)
	return appendRest(appendRequestID(dst, id), body, at, last)
}

// appendProblem appends e.
func appendProblem(dst []byte, e *problem.Error, id string, at *instant, last bool) []byte {
	dst = append(dst, "HTTP/1.1 "...)
	dst = strconv.AppendInt(dst, int64(e.Status), 10)
	dst = append(dst, ' ')
	dst = append(dst, http.StatusText(e.Status)...)
	dst = append(dst, "\r\n"...)
	if len(e.Allow) > 0 {
		dst = append(dst, "Allow: "+strings.Join(e.Allow, ", ")+"\r\n"...)
	}
	dst = append(dst, "Cache-Control: "+problem.NoStore+"\r\nContent-Type: "+problem.ContentType+"\r\n"...)
	if s := e.RetryAfter(); s > 0 {
		dst = append(dst, "Retry-After: "...)
		dst = strconv.AppendInt(dst, s, 10)
		dst = append(dst, "\r\n"...)
	}
	if c := e.Challenge(); c != "" {
		dst = append(dst, "Www-Authenticate: "+c+"\r\n"...)
	}
	return appendRest(appendRequestID(dst, id), e.Body(), at, last)
}

// appendRequestID appends the ID of the request, if it has one.
func appendRequestID[Text ~string | ~[]byte](dst []byte, id Text) []byte {
	if len(id) == 0 {
		return dst
	}
	dst = append(dst, requestid.Field+": "...)
	dst = append(dst, id...)
	return append(dst, "\r\n"...)
}

func appendRest(dst, body []byte, at *instant, last bool) []byte {
	dst = append(dst, at.date...)
	dst = append(dst, "Content-Length: "...)
	dst = strconv.AppendInt(dst, int64(len(body)), 10)
	if last {
		dst = append(dst, "\r\nConnection: close"...)
	}
	dst = append(dst, "\r\n\r\n"...)
	return append(dst, body...)
}
