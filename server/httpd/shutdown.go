package httpd

import (
	"context"
	"fmt"
	"time"
)

// Shutdown stops accepting, closes idle connections, lets every request whose
// head was read be answered (with "Connection: close"), and returns when all
// goroutines of the server have ended. When ctx ends first, it cancels the
// requests, closes their connections, and returns an error that says how many
// there were and matches ctx's. It may be called more than once, also without
// Serve; the listener is closed in any case.
func (s *Server) Shutdown(ctx context.Context) error {
	s.drain()
	select {
	case <-s.drained:
	case <-ctx.Done():
		return s.cut(ctx)
	}
	if s.slow.Shutdown(ctx) != nil {
		return s.cut(ctx)
	}
	s.release()
	s.helpers.Wait()
	return nil
}

// drain ends everything that is not in the middle of a request. The inner server
// keeps accepting, because a fast connection may still have a request for it.
func (s *Server) drain() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.draining.Swap(true) {
		return
	}
	close(s.stop)
	s.ln.Close()
	s.slow.SetKeepAlivesEnabled(false)
	past := time.Unix(1, 0)
	for raw, interruptible := range s.conns {
		if interruptible {
			_ = raw.SetReadDeadline(past) // fails on a closed one only
		}
	}
	if len(s.conns) == 0 {
		close(s.drained)
	}
}

// cut ends what did not end by itself.
func (s *Server) cut(ctx context.Context) error {
	n := s.live.Load()
	s.cutting.Store(true)
	s.release()
	s.slow.Close()
	s.mu.Lock()
	defer s.mu.Unlock()
	for raw := range s.conns {
		_ = abort(raw)
	}
	return fmt.Errorf("shut down HTTP with %d connections open: %w", n, context.Cause(ctx))
}

// release ends the context of all requests and the server's own goroutines.
func (s *Server) release() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.cancel()
	_ = s.inner.Close()
	select {
	case <-s.done:
	default:
		close(s.done)
	}
}
