package client

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/internal/bounded"
)

const (
	// tokenTime is how long the function of WithTokenFunc may take.
	tokenTime = 5 * time.Second

	// maxTokenLen is the longest token in bytes.
	maxTokenLen = 4 << 10
)

// tokens asks the application for tokens. One call of its function runs at a time, and all
// streams that are opened meanwhile take its token: so of a function that does not return
// one call hangs, and not one for each stream.
type tokens struct {
	ask   func(context.Context) (string, error)
	rt    leaf.Runtime
	guard guard
	tasks *bounded.Group  // that Close waits for
	root  context.Context //nolint:containedctx // of the calls, which serve many streams: it ends with Close

	mu   sync.Mutex
	call *tokenCall // under way; nil: none
}

// tokenCall is one call of the function. The outcome is written before done is closed.
type tokenCall struct {
	started time.Time
	done    chan struct{}
	token   string
	err     error
}

// tokenError says that there is no token. It is the application's, and says nothing about
// the node.
type tokenError struct{ cause error }

func (e *tokenError) Error() string {
	return fmt.Sprintf("the function of WithTokenFunc gives no token: %v", e.cause)
}

// GRPCStatus makes it an error of a stream that is opened.
func (e *tokenError) GRPCStatus() *status.Status {
	return status.New(codes.Unauthenticated, e.Error())
}

// get returns a token, or an error when ctx ends or the function takes too long.
func (t *tokens) get(ctx context.Context) (string, error) {
	call, err := t.join()
	if err != nil {
		return "", &tokenError{err}
	}
	left := call.started.Add(tokenTime).Sub(t.rt.Now())
	_ = t.rt.Wait(ctx, call.done, max(left, 1)) // the call itself says whether it has ended
	select {
	case <-call.done:
	default:
		return "", &tokenError{fmt.Errorf("it has not returned for %v", t.rt.Now().Sub(call.started).Round(time.Millisecond))}
	}
	if call.err != nil {
		return "", &tokenError{call.err}
	}
	return call.token, nil
}

// join returns the call under way, which it begins if there is none.
func (t *tokens) join() (*tokenCall, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.call != nil {
		return t.call, nil
	}
	call := &tokenCall{started: t.rt.Now(), done: make(chan struct{}), err: errors.New("it did not return")}
	if !t.tasks.Start(func() { t.run(call) }) {
		return nil, errClosed
	}
	t.call = call
	return call, nil
}

// run calls the function.
func (t *tokens) run(call *tokenCall) {
	defer close(call.done)
	defer func() {
		t.mu.Lock()
		t.call = nil
		t.mu.Unlock()
	}()
	ctx, cancel := t.rt.WithTimeout(t.root, tokenTime)
	defer cancel()
	call.err = t.guard.call("WithTokenFunc", func() (err error) {
		call.token, err = t.ask(ctx)
		return err
	})
	if call.err == nil {
		call.err = checkToken(call.token)
	}
}

// checkToken says why a token cannot be sent, without the token.
func checkToken(token string) error {
	if len(token) > maxTokenLen {
		return fmt.Errorf("a token of %d bytes: the limit is %d", len(token), maxTokenLen)
	}
	for _, c := range []byte(token) {
		if c < ' ' || c > '~' {
			return errors.New("a token must be printable ASCII")
		}
	}
	return nil
}
