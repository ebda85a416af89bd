package accept

import (
	"net"
	"sync"
	"sync/atomic"
)

// Conn is a connection that counts towards MaxConns.
type Conn struct {
	net.Conn
	of     *Listener
	heard  atomic.Int64
	spared bool // under of.mu
	end    sync.Once
}

// heardMost is where Heard stops counting, so that later calls of Read need no atomic add.
const heardMost = 64

// Read implements net.Conn.
func (c *Conn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if n > 0 && c.heard.Load() < heardMost {
		c.heard.Add(int64(n))
	}
	return n, err
}

// Heard returns how many bytes the client has sent, exactly only up to 64.
func (c *Conn) Heard() int64 { return c.heard.Load() }

// CloseWrite ends our direction of the connection, if it is one that can.
func (c *Conn) CloseWrite() error {
	if half, ok := c.Conn.(halfCloser); ok {
		return half.CloseWrite()
	}
	return net.ErrClosed
}

type halfCloser interface{ CloseWrite() error }

// Spare makes Drain leave this connection alone. If Drain has interrupted it before, the next
// read deadline that is set undoes the interruption.
func (c *Conn) Spare() {
	c.of.mu.Lock()
	defer c.of.mu.Unlock()
	c.spared = true
}

// Close implements net.Conn. It frees the connection's slot under MaxConns, and may be called more than once.
func (c *Conn) Close() (err error) {
	c.end.Do(func() {
		err = c.Conn.Close()
		c.of.mu.Lock()
		defer c.of.mu.Unlock()
		delete(c.of.conns, c)
	})
	return err
}
