package respd

import (
	"io"
	"net"
	"time"
)

const (
	// maxRefusals is how many connections beyond the limit are told why at the same
	// time. Those beyond it too are closed without a word.
	maxRefusals = 64

	// farewell bounds how long a connection is kept after its last reply.
	farewell = time.Second

	// tooManyClients is what Redis says.
	tooManyClients = "-ERR max number of clients reached\r\n"
)

// refuse tells a connection beyond the limit why and closes it, without reading its
// request. Under TLS it is only closed: a handshake costs more than the connection.
func (s *Server) refuse(raw net.Conn) {
	select {
	case s.refusals <- struct{}{}:
	default:
		raw.Close()
		return
	}
	if s.limits.TLS != nil || !s.track(raw) {
		<-s.refusals
		raw.Close()
		return
	}
	go func() {
		defer func() { <-s.refusals }()
		defer s.untrack(raw)
		defer raw.Close()
		if raw.SetWriteDeadline(time.Now().Add(farewell)) != nil {
			return
		}
		if _, err := io.WriteString(raw, tooManyClients); err == nil {
			s.linger(raw)
		}
	}()
}

// linger ends our direction of a connection and discards what the client still sends
// until it has seen the end of our last reply: closing a socket with unread bytes sends
// a reset, which can destroy the reply on its way.
func (s *Server) linger(raw net.Conn) {
	half, ok := raw.(interface{ CloseWrite() error })
	if !ok || raw.SetReadDeadline(time.Now().Add(farewell)) != nil || half.CloseWrite() != nil {
		return
	}
	_, _ = io.Copy(io.Discard, io.LimitReader(raw, int64(s.limits.MaxRequestBytes)))
}
