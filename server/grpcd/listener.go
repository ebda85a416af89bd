package grpcd

import (
	"net"
	"sync"
	"sync/atomic"
)

// limited is a listener that closes connections beyond a limit at once, and knows those
// that are open.
type limited struct {
	net.Listener
	limit int

	mu    sync.Mutex
	links map[*link]struct{}
}

func newLimited(ln net.Listener, limit int) *limited {
	return &limited{Listener: ln, limit: limit, links: make(map[*link]struct{})}
}

// Accept returns the next connection within the limit.
func (l *limited) Accept() (net.Conn, error) {
	for {
		raw, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		if c := l.admit(raw); c != nil {
			return c, nil
		}
		raw.Close()
	}
}

func (l *limited) admit(raw net.Conn) *link {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.links) >= l.limit {
		return nil
	}
	c := &link{Conn: raw, of: l}
	l.links[c] = struct{}{}
	return c
}

// open returns how many connections there are.
func (l *limited) open() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.links)
}

// closeSilent closes the connections whose client has not said enough to be one of
// HTTP/2. It is what GracefulStop waits for otherwise.
func (l *limited) closeSilent() {
	l.closeIf(func(c *link) bool { return c.heard.Load() < prefaceLen })
}

// closeAll closes every connection.
func (l *limited) closeAll() { l.closeIf(func(*link) bool { return true }) }

func (l *limited) closeIf(condemned func(*link) bool) {
	var found []*link
	l.mu.Lock()
	for c := range l.links {
		if condemned(c) {
			found = append(found, c)
		}
	}
	l.mu.Unlock()
	for _, c := range found {
		_ = c.Close()
	}
}

// prefaceLen is how many bytes an HTTP/2 client sends before its first frame.
const prefaceLen = 24

// link is a connection of a limited listener.
type link struct {
	net.Conn
	of    *limited
	heard atomic.Int64 // bytes from the client, counted up to prefaceLen
}

// Read implements net.Conn.
func (c *link) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if n > 0 && c.heard.Load() < prefaceLen {
		c.heard.Add(int64(n))
	}
	return n, err
}

// Close implements net.Conn. It may be called more than once.
func (c *link) Close() error {
	c.of.mu.Lock()
	delete(c.of.links, c)
	c.of.mu.Unlock()
	return c.Conn.Close()
}
