package respd

import (
	"io"
	"net"
	"time"

	"github.com/leaf-idgen/leaf/internal/server/accept"
)

const (
	// farewell bounds how long a connection is kept after its last reply.
	farewell = time.Second

	// tooManyClients is what Redis says.
	tooManyClients = "-ERR max number of clients reached\r\n"
)

// refuse tells a connection beyond the limit why, without reading its request.
func (s *Server) refuse(raw net.Conn) {
	if _, err := io.WriteString(raw, tooManyClients); err == nil {
		accept.Linger(raw, int64(s.limits.MaxRequestBytes))
	}
}

// linger ends a connection so that its last reply arrives.
func (s *Server) linger(raw net.Conn) {
	if raw.SetReadDeadline(time.Now().Add(farewell)) == nil {
		accept.Linger(raw, int64(s.limits.MaxRequestBytes))
	}
}
