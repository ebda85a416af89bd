package respd

import (
	"context"
	"fmt"
)

// Shutdown stops accepting, closes idle connections, lets every request that was read
// be answered, and returns when all goroutines of the server have ended. When ctx
// ends first, it cancels the requests, closes their connections, and returns an error
// that says how many there were and matches ctx's. It may be called more than once,
// also without Serve; the listener is closed in any case.
func (s *Server) Shutdown(ctx context.Context) error {
	s.ln.Drain()
	select {
	case <-s.ln.Drained():
	case <-ctx.Done():
		n := s.ln.Open()
		s.cancel()
		s.ln.Cut()
		return fmt.Errorf("shut down the Redis protocol with %d connections open: %w", n, context.Cause(ctx))
	}
	s.cancel()
	s.ln.Wait()
	return nil
}
