package httpd

import (
	"net"
	"sync"
	"time"
)

// handover is the listener of the inner net/http server: it accepts the
// connections that the fast path gives away.
type handover struct {
	conns  chan net.Conn
	closed chan struct{}
	once   sync.Once
	addr   net.Addr
}

func newHandover(addr net.Addr) *handover {
	return &handover{conns: make(chan net.Conn), closed: make(chan struct{}), addr: addr}
}

// give passes c on, or returns false if the server does not accept connections any more.
func (h *handover) give(c net.Conn) bool {
	select {
	case h.conns <- c:
		return true
	case <-h.closed:
		return false
	}
}

// Accept implements net.Listener.
func (h *handover) Accept() (net.Conn, error) {
	select {
	case c := <-h.conns:
		return c, nil
	case <-h.closed:
		return nil, net.ErrClosed
	}
}

// Close implements net.Listener.
func (h *handover) Close() error {
	h.once.Do(func() { close(h.closed) })
	return nil
}

// Addr implements net.Listener.
func (h *handover) Addr() net.Addr { return h.addr }

// slowConn is a connection on its way through net/http. Its reader sees first
// what the fast path had read and not answered.
type slowConn struct {
	net.Conn
	replay []byte

	headBy   time.Time // until then the head that the replay starts must be complete; zero: no such bound
	headOnce sync.Once

	certificate string // the client's name in it; "" if it showed none
}

// Read implements net.Conn.
func (c *slowConn) Read(p []byte) (int, error) {
	if len(c.replay) == 0 {
		return c.Conn.Read(p)
	}
	n := copy(p, c.replay)
	c.replay = c.replay[n:]
	if len(c.replay) == 0 {
		c.replay = nil
	}
	return n, nil
}

// SetReadDeadline implements net.Conn. The first deadline that net/http sets is
// that of the first head. Part of the time for it has passed on the fast path, so
// that deadline is not moved.
func (c *slowConn) SetReadDeadline(t time.Time) error {
	c.headOnce.Do(func() {
		if !c.headBy.IsZero() && c.headBy.Before(t) {
			t = c.headBy
		}
	})
	return c.Conn.SetReadDeadline(t)
}

// CloseWrite lets net/http end a connection in two steps, so that its last reply
// is not lost to a reset.
func (c *slowConn) CloseWrite() error {
	if half, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return nil
}
