package client

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/client/check"
	"github.com/leaf-idgen/leaf/internal/answers"
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

// unauthenticated is what calls get that have no token.
type unauthenticated struct{ cause *tokenError }

func (e *unauthenticated) Error() string {
	return fmt.Sprintf("%v: %v", leaf.ErrUnauthenticated, e.cause)
}

func (e *unauthenticated) Unwrap() []error { return []error{leaf.ErrUnauthenticated, e.cause} }

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

// answerOf returns the IDs of an answer, all of them or none.
func answerOf(a *leafpb.StreamResponse, count int) ([]leaf.Range, error) {
	if e := a.GetError(); e != nil {
		return nil, answers.Error(e.GetCode(), e.GetMessage(), time.Duration(e.GetRetryAfterMs())*time.Millisecond)
	}
	ranges, other, err := answers.Ranges(a.GetRanges(), count)
	if err != nil {
		return nil, &brokenError{cause: err, ids: other}
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
	switch code, after := answers.Reason(s); {
	case code != "":
		return answers.Error(code, s.Message(), after)
	case s.Code() == codes.Unauthenticated:
		return answers.Error("unauthenticated", fmt.Sprintf("%v: %s", leaf.ErrUnauthenticated, s.Message()), 0)
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
// has not yet read what they have: the token is being changed, the tag is new. When the numbers of a tag are used up, another
// node may have some of them in memory.
var doubtful = []error{leaf.ErrUnauthenticated, leaf.ErrForbidden, leaf.ErrUnknownTag, leaf.ErrBlocked, leaf.ErrInvalidRow, leaf.ErrOverflow, leaf.ErrDisabled}

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
