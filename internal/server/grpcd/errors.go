package grpcd

import (
	"fmt"
	"log/slog"
	"runtime/debug"
	"strconv"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/protoadapt"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/leafpb"
)

// domain is that of every ErrorInfo.
const domain = "leaf"

// errStopping is what a client sees of Shutdown, if it sees an error.
var errStopping = fmt.Errorf("%w: the server is shutting down", leaf.ErrNotReady)

// translate returns the class of err and the text for the client. The cause of an
// internal error goes to the log and not to the client.
func translate(log *slog.Logger, err error) (leaf.Class, string) {
	class := leaf.ClassOf(err)
	if class.Err != nil {
		return class, err.Error()
	}
	log.Error("internal error", "error", err)
	return class, "leaf: internal error, the server's log has the cause"
}

// statusOf returns err as the status of a call.
func statusOf(log *slog.Logger, err error) error {
	class, text := translate(log, err)
	st := status.New(codes.Code(class.GRPC), text)
	details := []protoadapt.MessageV1{&errdetails.ErrorInfo{
		Reason:   class.Code,
		Domain:   domain,
		Metadata: map[string]string{"retryable": strconv.FormatBool(class.Retryable)},
	}}
	if after := leaf.RetryAfter(err); after > 0 {
		details = append(details, &errdetails.RetryInfo{RetryDelay: durationpb.New(after)})
	}
	detailed, err := st.WithDetails(details...)
	if err != nil {
		return st.Err() // the code and the text are better than nothing
	}
	return detailed.Err()
}

// messageOf returns err as an answer of a stream.
func messageOf(log *slog.Logger, err error) *leafpb.Error {
	class, text := translate(log, err)
	return &leafpb.Error{
		Code:         class.Code,
		Message:      text,
		Retryable:    class.Retryable,
		RetryAfterMs: milliseconds(leaf.RetryAfter(err)),
	}
}

// milliseconds rounds up: a retry that comes too early is refused again.
func milliseconds(d time.Duration) int64 { return int64((d + time.Millisecond - 1) / time.Millisecond) }

// recoverTo turns a panic of a handler into an internal error with its stack.
func recoverTo(err *error) {
	if p := recover(); p != nil {
		*err = panicked(p)
	}
}

// recoverStatus is recoverTo for an err that grpc-go sends as it is.
func recoverStatus(log *slog.Logger, err *error) {
	if p := recover(); p != nil {
		*err = statusOf(log, panicked(p))
	}
}

func panicked(p any) error { return fmt.Errorf("panic: %v\n%s", p, debug.Stack()) }
