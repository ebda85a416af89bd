package client

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/client/check"
	"github.com/leaf-idgen/leaf/leafpb"
)

// errNotServing is what a node says that is draining or not ready.
var errNotServing = errors.New("the node says that it does not serve")

// errClosed is what calls get after Close.
var errClosed = fmt.Errorf("%w: the client is closed", leaf.ErrNotReady)

// brokenError is a request without an answer: the connection failed, or what came was
// no answer. Whether the node served it is unknown.
type brokenError struct {
	cause error
	own   bool  // the application's function has failed: it says nothing about the node
	ids   int64 // that came and were not what was asked for; 0: none, or not known
}

// The functions of the application that keep a request from its node.
var (
	errTokenPending       = errors.New("the function of WithTokenFunc has not returned")
	errInterceptorPending = errors.New("an interceptor of " + withInterceptors + " has not returned")
)

// ownError is the failure of an application's function.
func ownError(cause error) error { return &brokenError{cause: cause, own: true} }

// isOwn says that an application's function has failed, and not the node.
func isOwn(err error) bool {
	if _, ok := errors.AsType[*tokenError](err); ok {
		return true
	}
	e, ok := errors.AsType[*brokenError](err)
	return ok && e.own
}

func (e *brokenError) Error() string {
	return fmt.Sprintf("%v: no answer: %v", leaf.ErrNotReady, e.cause)
}
func (e *brokenError) Unwrap() []error { return []error{leaf.ErrNotReady, e.cause} }

// answerError is an error that a node answered, in its words.
type answerError struct {
	text  string
	cause error // the sentinel; leaf.Throttled with the time to wait; nil: internal
}

// unauthenticated is what calls get that have no token.
type unauthenticated struct{ cause *tokenError }

func (e *unauthenticated) Error() string {
	return fmt.Sprintf("%v: %v", leaf.ErrUnauthenticated, e.cause)
}

func (e *unauthenticated) Unwrap() []error { return []error{leaf.ErrUnauthenticated, e.cause} }

func (e *answerError) Error() string { return e.text }
func (e *answerError) Unwrap() error { return e.cause }

// lateError is the end of a call that ran out of time.
type lateError struct {
	cause error // what the nodes said last; leaf.ErrNotReady if nothing
	ctx   error // of the caller's context; nil: the client's own limit
}

func (e *lateError) Error() string { return e.cause.Error() }

func (e *lateError) Unwrap() []error {
	if e.ctx == nil {
		return []error{e.cause}
	}
	return []error{e.cause, e.ctx}
}

// late returns the error of a call that ended before an answer came; said is nil if no
// node has said anything. A call that its caller has cancelled has no class: it says
// nothing about the nodes, and is not to be repeated.
func late(said, ctx error) error {
	if errors.Is(ctx, context.Canceled) {
		if said == nil {
			return fmt.Errorf("the caller has cancelled the call: %w", ctx)
		}
		return fmt.Errorf("the caller has cancelled the call: %w; the nodes said last: %v", ctx, said) //nolint:errorlint // said must not give it a class
	}
	if said == nil {
		said = fmt.Errorf("%w: no node has answered yet", leaf.ErrNotReady)
	}
	return &lateError{said, ctx}
}

// answered restores the error that a node gave.
func answered(code, message string, after time.Duration) error {
	class, _ := leaf.ClassByCode(code)
	if message == "" {
		message = class.Title
	}
	cause := class.Err
	if after > 0 && class.Retryable {
		cause = leaf.Later(cause, "the node says", after)
	}
	return &answerError{message, cause}
}

// answerOf returns the IDs of an answer. An answer that is not exactly what was asked for is
// thrown away as a whole: an ID from a faulty node or a mixed-up stream may be meant for
// another client.
func answerOf(answer *leafpb.StreamResponse, count int) ([]leaf.Range, error) {
	if e := answer.GetError(); e != nil {
		return nil, answered(e.GetCode(), e.GetMessage(), time.Duration(e.GetRetryAfterMs())*time.Millisecond)
	}
	ranges := make([]leaf.Range, 0, len(answer.GetRanges()))
	total, end := int64(0), int64(0)
	for _, r := range answer.GetRanges() {
		if r.GetLo() < end || r.GetHi() <= r.GetLo() || r.GetHi()-r.GetLo() > leaf.MaxBatch {
			return nil, &brokenError{cause: fmt.Errorf("ranges %v are not in order", answer.GetRanges())}
		}
		end = r.GetHi()
		total += r.GetHi() - r.GetLo()
		ranges = leaf.AppendRange(ranges, leaf.Range{Lo: r.GetLo(), Hi: r.GetHi()})
	}
	if total != int64(count) {
		return nil, &brokenError{cause: fmt.Errorf("%d IDs in place of %d", total, count), ids: total}
	}
	return ranges, nil
}

// statusError returns what the end of a stream means. A status with leaf's ErrorInfo is
// an answer, and so is one about access (Unauthenticated). Every other end is a broken
// connection.
func statusError(err error) error {
	if e, ok := errors.AsType[*tokenError](err); ok {
		return &unauthenticated{e}
	}
	switch {
	case isBroken(err):
		return err
	case errors.Is(err, io.EOF):
		return &brokenError{cause: errors.New("the node ended the stream")}
	}
	s, ok := status.FromError(err)
	if !ok {
		return &brokenError{cause: err}
	}
	code, after := "", time.Duration(0)
	for _, detail := range s.Details() {
		switch d := detail.(type) {
		case *errdetails.ErrorInfo:
			if d.GetDomain() == "leaf" {
				code = d.GetReason()
			}
		case *errdetails.RetryInfo:
			after = d.GetRetryDelay().AsDuration()
		}
	}
	switch {
	case code != "":
		return answered(code, s.Message(), after)
	case s.Code() == codes.Unauthenticated:
		return &answerError{fmt.Sprintf("%v: %s", leaf.ErrUnauthenticated, s.Message()), leaf.ErrUnauthenticated}
	}
	return &brokenError{cause: err}
}

// verdict is what a flight does about an error.
type verdict int

const (
	final     verdict = iota // an answer: the caller gets it
	doubted                  // an answer, and it may be of this node only: one other node is asked
	throttled                // the same, and the node says when to come again
	elsewhere                // other nodes may have better news
)

// doubtful are the errors of a node that is configured otherwise than the others, or that
// has not yet read what they have: the token is being changed, the tag is new.
var doubtful = []error{leaf.ErrUnauthenticated, leaf.ErrForbidden, leaf.ErrUnknownTag, leaf.ErrBlocked, leaf.ErrInvalidRow, leaf.ErrDisabled}

// verdictOf judges an error of a request.
//
// ErrRegress is final although another node may not have noticed that the store went
// backwards: a node that has not is one that may repeat IDs.
func verdictOf(err error) verdict {
	class := leaf.ClassOf(err)
	switch {
	case errors.Is(err, check.ErrRepeated), errors.Is(err, check.ErrDecreasing):
		return final // another node's answer would hide it
	case errors.Is(err, leaf.ErrThrottled):
		return throttled
	case class.Retryable, class.Err == nil:
		return elsewhere
	}
	if slices.Contains(doubtful, class.Err) {
		return doubted
	}
	return final
}

// isBroken says that a request got no answer.
func isBroken(err error) bool {
	_, ok := errors.AsType[*brokenError](err)
	return ok
}

// moreInformative says whether a is more to a caller than b: what a node answered outranks a
// connection that broke, and later news outranks earlier.
func moreInformative(a, b error) bool { return b == nil || !isBroken(a) || isBroken(b) }
