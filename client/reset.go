package client

import (
	"context"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"
)

// Check implements link.
func (l *grpcLink) Check(ctx context.Context) error {
	l.mu.Lock()
	cc := l.conn.cc
	l.mu.Unlock()
	answer, err := grpc_health_v1.NewHealthClient(cc).Check(ctx, &grpc_health_v1.HealthCheckRequest{})
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

// Abandon implements link.
func (l *grpcLink) Abandon(r *request) {
	l.mu.Lock()
	var alone *stream
	for s := range l.conn.streams {
		if len(s.queue) == 1 && s.queue[0] == r {
			alone = s
		}
	}
	l.mu.Unlock()
	if alone != nil {
		alone.cancel()
	}
}

// Sweep implements link.
func (l *grpcLink) Sweep() {
	l.mu.Lock()
	var stuck []*stream
	for s := range l.conn.streams {
		wanted := len(s.queue) == 0 || !s.queue[0].Abandoned()
		if s.doomed && !wanted {
			stuck = append(stuck, s)
		}
		s.doomed = !wanted
	}
	l.mu.Unlock()
	for _, s := range stuck {
		s.cancel()
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

// breakLocked returns what ends the connection; it is called without the lock.
func (c *conn) breakLocked() func() {
	c.broken = true
	streams := make([]*stream, 0, len(c.streams))
	for s := range c.streams {
		streams = append(streams, s)
	}
	return func() {
		for _, s := range streams {
			s.cancel()
		}
		if err := c.cc.Close(); err != nil {
			return // it was closed before
		}
	}
}
