package httpd

import (
	"net"

	"github.com/leaf-idgen/leaf/internal/server/accept"
	"github.com/leaf-idgen/leaf/internal/server/problem"
)

// refuse tells a connection beyond the limit 503, without reading its request.
func (s *Server) refuse(raw net.Conn) {
	conn := s.secured(raw)
	e := problem.TooManyConnections(s.limits.MaxConns)
	if _, err := conn.Write(appendProblem(nil, e, "", s.clock.now.Load(), true)); err == nil {
		accept.Linger(conn, int64(s.limits.MaxHeadBytes))
	}
}
