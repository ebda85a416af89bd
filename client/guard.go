package client

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"runtime/debug"
	"slices"
	"sync/atomic"

	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"
)

// guard is how the client calls the functions that the application has given it. A panic
// in one of them ends no goroutine of the client: it becomes an error, and is logged.
type guard struct{ log *journal }

// call returns the error of f, or its panic as one.
func (g guard) call(option string, f func() error) (err error) {
	defer g.recovered(option, &err)
	return f()
}

// recovered is deferred around a call of an application's function.
func (g guard) recovered(option string, err *error) {
	p := recover()
	if p == nil {
		return
	}
	*err = fmt.Errorf("a function of %s panicked: %v", option, p)
	g.log.add(slog.LevelError, "a function of "+option+" panicked; the client goes on", "panic", fmt.Sprint(p), "stack", string(debug.Stack()))
}

// trace guards the function of WithTrace; nil: none.
func (g guard) trace(begin func(context.Context, Call) func(error)) func(context.Context, Call) func(error) {
	if begin == nil {
		return nil
	}
	const option = "WithTrace"
	return func(ctx context.Context, call Call) func(error) {
		var end func(error)
		if g.call(option, func() error { end = begin(ctx, call); return nil }) != nil || end == nil {
			return nil
		}
		return func(err error) { _ = g.call(option, func() error { end(err); return nil }) } // it is in the log
	}
}

// connect guards the function of WithDialer.
func (g guard) connect(dial func(context.Context, string) (net.Conn, error)) func(context.Context, string) (net.Conn, error) {
	return func(ctx context.Context, address string) (conn net.Conn, err error) {
		err = g.call("WithDialer", func() error { conn, err = dial(ctx, address); return err })
		return conn, err
	}
}

// withInterceptors names the option in errors.
const withInterceptors = "WithStreamInterceptors"

// passage is the way of one stream through the application's functions: the token function,
// and the interceptors between outside and inside. While the application's code runs, the
// node has not been asked, or has answered already, so that the wait says nothing about
// the node. The same holds for an error that comes from outside only.
type passage struct {
	conn        *conn
	intercepted bool

	busy    atomic.Int32 // calls of the stream in an interceptor
	token   atomic.Bool  // the token function runs
	blocked atomic.Bool  // gRPC has failed a call of the stream, or the token function has
}

// passageKey is the context key of the passage of a stream.
type passageKey struct{}

// passageOption takes a passage to inside when an interceptor passes another context on.
type passageOption struct {
	grpc.EmptyCallOption

	passage *passage
}

// passageOf returns the passage of a stream that is opened.
func passageOf(ctx context.Context, opts []grpc.CallOption) *passage {
	if p, ok := ctx.Value(passageKey{}).(*passage); ok {
		return p
	}
	for _, o := range opts {
		if o, ok := o.(passageOption); ok {
			return o.passage
		}
	}
	return &passage{} // an interceptor has dropped both
}

// held says which function of the application keeps the stream waiting; nil: none.
func (p *passage) held() error {
	switch {
	case p.token.Load():
		return ownError(errTokenPending)
	case p.busy.Load() > 0:
		return ownError(errInterceptorPending)
	}
	return nil
}

// outside is the outermost interceptor of the client: it runs before those of the application.
func (g guard) outside(ctx context.Context, d *grpc.StreamDesc, cc *grpc.ClientConn, method string, open grpc.Streamer, opts ...grpc.CallOption) (s grpc.ClientStream, err error) {
	p, _ := ctx.Value(passageKey{}).(*passage)
	opts = append(slices.Clip(opts), passageOption{passage: p})
	err = g.pass(p, func() error { s, err = open(ctx, d, cc, method, opts...); return err })
	if err != nil {
		return nil, err
	}
	return outerStream{s, g, p}, nil
}

// pass calls f, which calls interceptors.
func (g guard) pass(p *passage, f func() error) error {
	p.busy.Add(1)
	defer p.busy.Add(-1)
	err := g.call(withInterceptors, f)
	if err != nil && !p.blocked.Load() {
		return ownError(fmt.Errorf("%s: %w", withInterceptors, err))
	}
	return err
}

// leave calls f, which is gRPC, from within the interceptors. When ctx has ended before, the
// interceptors have used up the time, and f fails for that.
func (p *passage) leave(ctx context.Context, f func() error) error {
	inTime := ctx.Err() == nil
	if p.intercepted {
		p.busy.Add(-1)
		defer p.busy.Add(1)
	}
	err := f()
	if err != nil && inTime {
		p.blocked.Store(true)
	}
	return err
}

// outerStream is a stream as the client sees it.
type outerStream struct {
	grpc.ClientStream

	guard   guard
	passage *passage
}

func (s outerStream) SendMsg(m any) error {
	return s.guard.pass(s.passage, func() error { return s.ClientStream.SendMsg(m) })
}

func (s outerStream) RecvMsg(m any) error {
	return s.guard.pass(s.passage, func() error { return s.ClientStream.RecvMsg(m) })
}

func (s outerStream) Header() (header metadata.MD, err error) {
	err = s.guard.pass(s.passage, func() error { header, err = s.ClientStream.Header(); return err })
	return header, err
}

// innerStream is a stream as the interceptors see it.
type innerStream struct {
	grpc.ClientStream

	passage *passage
}

func (s innerStream) SendMsg(m any) error {
	return s.passage.leave(s.Context(), func() error { return s.ClientStream.SendMsg(m) })
}

func (s innerStream) RecvMsg(m any) error {
	return s.passage.leave(s.Context(), func() error { return s.ClientStream.RecvMsg(m) })
}

func (s innerStream) Header() (header metadata.MD, err error) {
	err = s.passage.leave(s.Context(), func() error { header, err = s.ClientStream.Header(); return err })
	return header, err
}
