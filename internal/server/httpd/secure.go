package httpd

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"time"

	"github.com/leaf-idgen/leaf/internal/server/accept"
)

// overHTTP1 returns c for the only version of HTTP that this server speaks.
func overHTTP1(c *tls.Config) *tls.Config {
	if c == nil {
		return nil
	}
	c = c.Clone()
	c.NextProtos = []string{"http/1.1"}
	if each := c.GetConfigForClient; each != nil {
		c.GetConfigForClient = func(hello *tls.ClientHelloInfo) (*tls.Config, error) {
			own, err := each(hello)
			return overHTTP1(own), err
		}
	}
	return c
}

// secured returns raw, or the TLS connection in it that clients are to speak.
func (s *Server) secured(raw net.Conn) net.Conn {
	if s.tls == nil {
		return raw
	}
	return tls.Server(raw, s.tls)
}

// explainTime bounds the answer to a client that speaks plain HTTP to a TLS port.
const explainTime = time.Second

// secure makes the TLS handshake, if there is one to be made, within the time for the
// first head, and notes the client's certificate. False: the connection is to be closed.
func (c *fastConn) secure() bool {
	conn, ok := c.raw.(*tls.Conn)
	if !ok {
		return true
	}
	if conn.SetDeadline(c.headBy) != nil || c.srv.ln.Closed() { // as before a Read in run
		return false
	}
	if err := conn.HandshakeContext(c.srv.base); err != nil {
		c.srv.log.Debug("the TLS handshake failed", "client", conn.RemoteAddr(), "error", err)
		explainTLS(err)
		return false
	}
	c.shown.Certificate = accept.ClientName(conn.ConnectionState())
	return true
}

// explainTLS tells a client that speaks plain HTTP to us so, as net/http does.
func explainTLS(err error) {
	e, ok := errors.AsType[tls.RecordHeaderError](err)
	if !ok || e.Conn == nil {
		return
	}
	switch string(e.RecordHeader[:]) {
	case "GET /", "HEAD ", "POST ", "PUT /", "OPTIO":
		_ = e.Conn.SetWriteDeadline(time.Now().Add(explainTime))
		_, _ = io.WriteString(e.Conn, "HTTP/1.0 400 Bad Request\r\n\r\nClient sent an HTTP request to an HTTPS server.\n")
	}
}

// certificateKey is the context key of a connection's certificate.
type certificateKey struct{}

// withCertificate hands what secure noted to the handlers of net/http.
func withCertificate(ctx context.Context, conn net.Conn) context.Context {
	if c, ok := conn.(*slowConn); ok && c.certificate != "" {
		return context.WithValue(ctx, certificateKey{}, c.certificate)
	}
	return ctx
}
