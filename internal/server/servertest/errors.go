package servertest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/leaf-idgen/leaf"
)

// secret stands in causes that no caller may see.
const secret = "secret-12345"

// everyClass: an error of the table arrives as itself. A client may try a retryable one
// again until its caller's deadline, so the deadline is near.
func everyClass(b *bench) {
	for _, class := range leaf.Classes() {
		if class.Err == nil {
			continue
		}
		cause := fmt.Errorf("reserve tag %q in row 4711: %w", "order", class.Err)
		wire := b.start(b, failing(cause).access())
		for _, w := range ways {
			got, err := w.ask(b.call(b.retryTime(class)), wire, "order")
			switch {
			case !errors.Is(err, class.Err) || len(got) > 0:
				b.Errorf("%s: %v = %v, %v; want %v", class.Code, w, got, err, class.Err)
			case leaf.ClassOf(err).Code != class.Code:
				b.Errorf("%s: %v: %v is of class %q", class.Code, w, err, leaf.ClassOf(err).Code)
			case !strings.Contains(err.Error(), "row 4711"):
				b.Errorf("%s: %v: %q lacks the text of its cause %q", class.Code, w, err, cause)
			}
		}
	}
}

// retryTime is how long a call that fails with class may take.
func (b *bench) retryTime(class leaf.Class) time.Duration {
	if class.Retryable {
		return 2 * time.Second
	}
	return b.patience
}

// retryHint: the hints lie beyond the caller's deadline, because a client may wait for a
// nearer one by itself.
func retryHint(b *bench) {
	unit := max(b.opt.RetryUnit, time.Millisecond)
	for _, cause := range []error{leaf.ErrThrottled, leaf.ErrExhausted} {
		b.hints(cause, unit)
	}
	wire := b.start(b, failing(leaf.ErrBlocked).access())
	if _, err := ways[0].ask(b.call(b.patience), wire, "order"); leaf.RetryAfter(err) != 0 {
		b.Errorf("%v: retry after %v; want no hint", err, leaf.RetryAfter(err))
	}
}

// hints: the time of a retry arrives with an error that is cause.
func (b *bench) hints(cause error, unit time.Duration) {
	b.Helper()
	class := leaf.ClassOf(cause)
	for _, hint := range []time.Duration{61*time.Second + 234*time.Millisecond, 20*time.Hour + 30*time.Minute + time.Millisecond} {
		wire := b.start(b, failing(fmt.Errorf("issue tag %q: %w", "order", leaf.Later(cause, "5 IDs/s of tag order", hint))).access())
		for _, w := range ways {
			_, err := w.ask(b.call(b.retryTime(class)), wire, "order")
			if !errors.Is(err, cause) || !strings.Contains(err.Error(), "5 IDs/s of tag order") {
				b.Errorf("%v: %v; want %v and the limit", w, err, cause)
			}
			if got := leaf.RetryAfter(err); got < hint || got >= hint+unit {
				b.Errorf("%v: retry after %v; want %v, rounded up to %v", w, got, hint, unit)
			}
		}
	}
}

func internalError(b *bench) {
	for _, cause := range []error{errors.New(secret), fmt.Errorf("%s\r\n%w", secret, errors.ErrUnsupported)} {
		wire := b.start(b, failing(cause).access())
		for _, w := range ways {
			got, err := w.ask(b.call(b.patience), wire, "order")
			b.wantInternal(w, got, err)
		}
	}
}

func (b *bench) wantInternal(w way, got []leaf.Range, err error) {
	b.Helper()
	switch {
	case err == nil || len(got) > 0:
		b.Errorf("%v = %v, %v; want an internal error", w, got, err)
	case leaf.ClassOf(err).Code != "internal" || leaf.RetryAfter(err) != 0:
		b.Errorf("%v: %v is of class %q, retry after %v; want internal", w, err, leaf.ClassOf(err).Code, leaf.RetryAfter(err))
	case strings.Contains(err.Error(), secret):
		b.Errorf("%v: %q shows the cause", w, err)
	}
}

// panics: when the engine panics, the server still answers, on the client's connection or on a new one.
func panics(b *bench) {
	f := &fake{answer: func(_ context.Context, c call) ([]leaf.Range, error) {
		if c.tag == "panic" {
			panic(secret)
		}
		return []leaf.Range{{Lo: 5, Hi: 5 + int64(c.n)}}, nil
	}}
	wire := b.start(b, f.access())
	for range 3 {
		for _, w := range ways {
			got, err := w.ask(b.call(b.patience), wire, "panic")
			b.wantInternal(w, got, err)
			f.asked()
			b.want(f, wire, w, "order", leaf.Range{Lo: 5, Hi: 5 + int64(max(w.n, 1))})
		}
	}
}
