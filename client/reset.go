package client

import (
	"context"
	"errors"
	"io"
	"slices"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"
)

// checking is a health check under way. The outcome is written before done is closed.
type checking struct {
	began time.Time
	done  chan struct{}
	err   error
}

// Check implements link. An interceptor may ignore the context: then the check goes on by
// itself, and no other one begins for callbackTime, so that few of them hang.
func (l *grpcLink) Check(ctx context.Context) error {
	l.mu.Lock()
	c, last := l.conn, l.checking
	l.mu.Unlock()
	if !l.intercepted {
		return c.examine(ctx)
	}
	if last != nil && time.Since(last.began) < callbackTime {
		select {
		case <-last.done:
		default:
			return ownError(errInterceptorPending)
		}
	}
	k := &checking{began: time.Now(), done: make(chan struct{})}
	l.mu.Lock()
	l.checking = k
	l.mu.Unlock()
	l.tasks.Go(func() { k.err = c.examine(ctx); close(k.done) })
	select {
	case <-k.done:
		return k.err
	case <-ctx.Done():
	}
	late := time.NewTimer(openTime) // gRPC returns at once
	defer late.Stop()
	select {
	case <-k.done:
		return k.err
	case <-late.C:
		return ownError(errInterceptorPending)
	}
}

// examine is Check on one connection.
func (c *conn) examine(ctx context.Context) error {
	answer, err := c.check(ctx)
	if errors.Is(err, ErrOtherCluster) || isOwn(err) {
		return err
	}
	switch status.Code(err) {
	case codes.OK:
		if answer.GetStatus() == grpc_health_v1.HealthCheckResponse_NOT_SERVING {
			return errNotServing
		}
		return nil
	case codes.Unimplemented, codes.NotFound, codes.Unauthenticated, codes.PermissionDenied:
		return nil // it lives, and does not say how it is
	}
	return statusError(err)
}

// check is a call of the health service in two steps, to see whether it waits for a
// stream to end.
func (c *conn) check(ctx context.Context) (*grpc_health_v1.HealthCheckResponse, error) {
	s, err := c.cc.NewStream(context.WithValue(ctx, passageKey{}, c.passage()), &grpc.StreamDesc{}, grpc_health_v1.Health_Check_FullMethodName)
	if err != nil {
		return nil, err
	}
	var answer grpc_health_v1.HealthCheckResponse
	if err := s.SendMsg(&grpc_health_v1.HealthCheckRequest{}); err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	if err := s.RecvMsg(&answer); err != nil { // io.EOF of SendMsg: it says why
		return nil, err
	}
	if err := c.link.of.admitHeader(s); err != nil {
		return nil, err
	}
	return &answer, nil
}

// Abandon implements link.
func (l *grpcLink) Abandon(r *request) {
	l.mu.Lock()
	gone := false
	if i := slices.Index(l.conn.waiting, r); i >= 0 {
		l.conn.waiting = slices.Delete(l.conn.waiting, i, i+1)
		gone = true
	}
	for s := range l.conn.streams {
		switch i := slices.Index(s.queue, r); {
		case i < 0:
		case i >= len(s.queue)-s.unsent:
			s.queue = slices.Delete(s.queue, i, i+1)
			s.unsent--
			gone = true
		case !slices.ContainsFunc(s.queue, func(other *request) bool { return !other.Abandoned() }):
			s.shutLocked()
		}
	}
	l.mu.Unlock()
	if gone { // the node has never heard of it
		r.Done(nil, errGivenUp)
	}
}

// Held implements link.
func (l *grpcLink) Held(r *request) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if s := l.conn.opening; s != nil && slices.Contains(l.conn.waiting, r) {
		return s.passage.held()
	}
	for s := range l.conn.streams {
		if slices.Contains(s.queue, r) {
			return s.passage.held()
		}
	}
	return nil
}

// Sweep implements link.
func (l *grpcLink) Sweep() {
	l.mu.Lock()
	var failed []*request
	var why error
	if s := l.conn.opening; s != nil && time.Since(s.began) > callbackTime {
		if why = s.passage.held(); why != nil {
			s.shutLocked()
			failed, l.conn.waiting, l.conn.opening = l.conn.waiting, nil, nil
		}
	}
	for s := range l.conn.streams {
		wanted := len(s.queue) == 0 || !s.queue[0].Abandoned()
		if s.doomed && !wanted {
			s.shutLocked()
		}
		s.doomed = !wanted
	}
	l.mu.Unlock()
	for _, r := range failed {
		r.Done(nil, why)
	}
}

// Reset implements link.
func (l *grpcLink) Reset() {
	fresh, err := l.connect()
	if err != nil {
		return // the address was good before; the old connection goes on
	}
	l.mu.Lock()
	old := l.conn
	if old.broken {
		old = fresh // closed meanwhile
	} else {
		l.conn = fresh
	}
	stop := old.breakLocked()
	l.mu.Unlock()
	stop()
}

// Close implements link.
func (l *grpcLink) Close() {
	l.mu.Lock()
	stop := l.conn.breakLocked()
	l.mu.Unlock()
	stop()
	l.tasks.Wait()
}

// breakLocked ends the connection's streams and returns what ends the connection, to be
// called without the lock.
func (c *conn) breakLocked() func() {
	failed := c.waiting
	c.broken, c.waiting = true, nil
	if c.opening != nil {
		c.opening.shutLocked()
	}
	for s := range c.streams {
		s.shutLocked()
	}
	return func() {
		for _, r := range failed {
			r.Done(nil, errGivenUp)
		}
		if err := c.cc.Close(); err != nil {
			return // it was closed before
		}
	}
}
