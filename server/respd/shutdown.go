package respd

import (
	"context"
	"fmt"
	"time"
)

// Shutdown stops accepting, closes idle connections, lets every request that was read
// be answered, and returns when all goroutines of the server have ended. When ctx
// ends first, it cancels the requests, closes their connections, and returns an error
// that says how many there were and matches ctx's. It may be called more than once,
// also without Serve; the listener is closed in any case.
func (s *Server) Shutdown(ctx context.Context) error {
	s.drain()
	select {
	case <-s.drained:
	case <-ctx.Done():
		return s.giveUp(ctx)
	}
	s.release()
	s.helpers.Wait()
	return nil
}

// drain ends everything that is not in the middle of a request.
func (s *Server) drain() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.draining.Swap(true) {
		return
	}
	close(s.stop)
	s.ln.Close()
	past := time.Unix(1, 0)
	for raw := range s.conns {
		_ = raw.SetReadDeadline(past) // fails on a closed one only
	}
	if len(s.conns) == 0 {
		close(s.drained)
	}
}

// giveUp ends what did not end by itself.
func (s *Server) giveUp(ctx context.Context) error {
	n := s.live.Load()
	s.release()
	s.mu.Lock()
	defer s.mu.Unlock()
	for raw := range s.conns {
		raw.Close()
	}
	return fmt.Errorf("shut down the Redis protocol with %d connections open: %w", n, context.Cause(ctx))
}

// release ends the context of all requests and the server's own goroutine.
func (s *Server) release() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.cancel()
	select {
	case <-s.done:
	default:
		close(s.done)
	}
}
