package grpcd

import (
	"context"
	"fmt"
	"time"

	"github.com/leaf-idgen/leaf/internal/server/accept"
)

// The end of streams in Shutdown. A client does not know which of its requests a stream
// that ends has still read, so a stream that rests ends first.
const (
	windTick = 5 * time.Millisecond
	restFor  = 10 * time.Millisecond // a stream that waits this long for a request rests
	restBy   = time.Second           // a stream that did not rest by then ends between two answers
)

// Shutdown stops accepting, tells the clients to go elsewhere (GOAWAY, NOT_SERVING),
// answers the calls under way, ends the streams as doc.go says, and returns when all
// goroutines of the server have ended. When ctx ends first, it closes all connections,
// which cancels what is under way, and returns an error that says how many there were
// and matches ctx's. It may be called more than once, also without Serve; the listener
// is closed in any case.
func (s *Server) Shutdown(ctx context.Context) error {
	s.draining.Store(true) // Serve closes the listener by itself, also when that has failed
	_ = s.ln.Close()
	s.health.stop()

	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		s.grpc.GracefulStop()
	}()
	if err := s.wind(ctx, stopped); err != nil {
		return err
	}
	s.handlers.Wait()
	s.release()
	s.ln.Wait()
	return nil
}

// wind ends streams until stopped is closed, or everything once ctx ends.
func (s *Server) wind(ctx context.Context, stopped <-chan struct{}) error {
	t := time.NewTicker(windTick)
	defer t.Stop()
	began := time.Now()
	for {
		select {
		case <-stopped:
			return nil
		case <-ctx.Done():
			return s.cut(ctx)
		case now := <-t.C:
			s.ln.CloseIf(silent)
			s.endStreams(now, now.Sub(began) >= restBy)
		}
	}
}

// prefaceLen is how many bytes an HTTP/2 client sends before its first frame.
const prefaceLen = 24

// silent reports whether a client has not sent a whole preface of HTTP/2. GracefulStop would wait
// for such a client.
func silent(c *accept.Conn) bool { return c.Heard() < prefaceLen }

// endStreams ends the streams that rest, or all that wait for a request.
func (s *Server) endStreams(now time.Time, all bool) {
	var late error
	if all {
		late = statusOf(s.log, errStopping)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for c := range s.calls {
		switch state, still := c.look(now); {
		case still >= restFor:
			c.finish(state, nil)
		case all:
			c.finish(state, late)
		}
	}
}

// cut ends what did not end by itself.
func (s *Server) cut(ctx context.Context) error {
	n := s.ln.Open()
	s.ln.Cut()
	s.grpc.Stop()
	s.release()
	return fmt.Errorf("shut down gRPC with %d connections open: %w", n, context.Cause(ctx))
}

// release ends keep.
func (s *Server) release() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.stopped {
		s.stopped = true
		close(s.done)
	}
}
