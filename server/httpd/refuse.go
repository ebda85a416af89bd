package httpd

import (
	"io"
	"net"
	"time"

	"github.com/leaf-idgen/leaf/server/problem"
)

const (
	// maxRefusals is how many connections beyond the limit are told why at the same
	// time. Those beyond it too are closed without a word.
	maxRefusals = 64

	// refusalTime bounds how long one refused connection is kept.
	refusalTime = time.Second
)

// refuse tells a connection beyond the limit 503 and closes it, without reading
// its request. The client's bytes are discarded until it has seen the end of the
// reply: closing a socket with unread bytes sends a reset, which can destroy the
// reply on its way.
func (s *Server) refuse(raw net.Conn) {
	select {
	case s.refusals <- struct{}{}:
	default:
		raw.Close()
		return
	}
	if !s.track(raw) {
		<-s.refusals
		raw.Close()
		return
	}
	go func() {
		defer func() { <-s.refusals }()
		defer s.untrack(raw)
		defer raw.Close()
		if raw.SetDeadline(time.Now().Add(refusalTime)) != nil {
			return
		}
		e := problem.TooManyConnections(s.limits.MaxConns)
		if _, err := raw.Write(appendProblem(nil, e, s.clock.now.Load(), true)); err != nil {
			return
		}
		if half, ok := raw.(interface{ CloseWrite() error }); ok && half.CloseWrite() == nil && !s.draining.Load() {
			_, _ = io.Copy(io.Discard, io.LimitReader(raw, int64(s.limits.MaxHeadBytes)))
		}
	}()
}
