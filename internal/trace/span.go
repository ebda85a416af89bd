package trace

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"time"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/internal/requestid"
)

// Kind says on which side of a call a span is.
type Kind int

// Kinds, with the numbers of OTLP.
const (
	Server Kind = 2 // a request that was received
	Client Kind = 3 // a call of a database or a registry
)

// Span is one call under way. Its methods are for one goroutine, and a nil Span does nothing.
type Span struct {
	tracer     *Tracer
	name       string
	kind       Kind
	trace      string // 32 hexadecimal digits
	id, parent string // 16 each; no parent: ""
	begin, end time.Time
	attributes []attribute
	failure    string // "": none
}

// Start begins a span, as a child of the caller's span if ctx has the traceparent of one
// ([requestid.Parent]). A nil Tracer returns nil.
func (t *Tracer) Start(ctx context.Context, kind Kind, name string) *Span {
	if t == nil {
		return nil
	}
	s := &Span{tracer: t, name: name, kind: kind, id: newID(8), begin: time.Now()}
	if s.trace, s.parent = requestid.Parent(ctx); s.trace == "" {
		s.trace = newID(16)
	}
	return s
}

// Set adds what the call is about. A nil Span does not format the value.
func (s *Span) Set(key string, value any) {
	if s != nil {
		s.attributes = append(s.attributes, attribute{key, text{fmt.Sprint(value)}})
	}
}

// End ends the span with the outcome of the call, and hands it to the collector. It returns at once.
func (s *Span) End(err error) {
	if s == nil {
		return
	}
	s.end = time.Now()
	if err != nil {
		s.Set("error.type", leaf.ClassOf(err).Code)
		s.failure = err.Error()
	}
	s.tracer.push(s)
}

func newID(size int) string {
	id := make([]byte, size)
	_, _ = rand.Read(id) // never fails
	return hex.EncodeToString(id)
}
