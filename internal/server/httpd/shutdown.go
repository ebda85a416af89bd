package httpd

import (
	"context"
	"fmt"
)

// Leave makes every reply from now on the last one of its connection, and says so in it
// ("Connection: close"). The server goes on accepting. A client that keeps connections
// open would otherwise stay until Shutdown, and might send a request just as that closes
// its connection.
func (s *Server) Leave() { s.leaving.Store(true) }

// Shutdown stops accepting, closes idle connections, lets every request whose
// head was read be answered (with "Connection: close"), and returns when all
// goroutines of the server have ended. When ctx ends first, it cancels the
// requests, closes their connections, and returns an error that says how many
// there were and matches ctx's. It may be called more than once, also without
// Serve; the listener is closed in any case.
func (s *Server) Shutdown(ctx context.Context) error {
	// The inner server keeps accepting, because a fast connection may still have a
	// request for it.
	s.ln.Drain()
	s.slow.SetKeepAlivesEnabled(false)
	select {
	case <-s.ln.Drained():
	case <-ctx.Done():
		return s.cut(ctx)
	}
	if s.slow.Shutdown(ctx) != nil {
		return s.cut(ctx)
	}
	s.release()
	s.ln.Wait()
	return nil
}

// cut ends what did not end by itself. It closes the sockets first: a TLS connection
// says good-bye when it is closed, and may wait for seconds for a client that does not
// read.
func (s *Server) cut(ctx context.Context) error {
	n := s.ln.Open()
	s.release()
	s.ln.Cut()
	_ = s.slow.Close()
	return fmt.Errorf("shut down HTTP with %d connections open: %w", n, context.Cause(ctx))
}

// release ends the context of all requests and the inner server's listener.
func (s *Server) release() {
	s.cancel()
	_ = s.inner.Close()
}
