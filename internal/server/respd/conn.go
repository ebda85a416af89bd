package respd

import (
	"context"
	"crypto/tls"
	"net"
	"runtime/debug"
	"time"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/internal/server/accept"
)

const (
	// firstBuffer is the size of a connection's buffers until it needs more.
	firstBuffer = 4 << 10

	// keptBuffer is how large an empty buffer may stay that is not made use of.
	keptBuffer = 16 << 10

	// flushAt is how many bytes of replies are gathered before they are written.
	flushAt = 64 << 10
)

// conn is one connection. One goroutine owns it; Shutdown touches raw only.
type conn struct {
	srv *Server
	raw net.Conn
	ctx context.Context //nolint:containedctx // of all requests
	session

	in     []byte
	r, w   int // in[r:w] is read but not answered
	filled int // bytes that the last Read returned
	parser parser
	out    reply
	mark   int    // where the reply to the current request begins in out
	cut    bool   // a part of that reply has been written
	failed error  // of the last write
	ending bool   // no further request is read
	memory recent // of tags
	last   lastCommand

	commands, failures int64 // not yet in the server's counters

	requestBy time.Time // when the request that is being received must be complete; zero: none is
	loginBy   time.Time // when a client that must authenticate must have
	idleAt    int64     // tick at which the read deadline for idling was set; 0: it is not set
	writeAt   int64     // tick at which the write deadline was set
}

func newConn(s *Server, raw net.Conn, id int64) *conn {
	c := &conn{srv: s, raw: raw, session: session{id: id, since: time.Now()}, in: make([]byte, firstBuffer)}
	c.ctx = context.WithValue(s.base, leaf.WaitKey{}, c.relieve)
	c.out.buf = make([]byte, 0, firstBuffer/4)
	c.parser.limit = s.limits.MaxRequestBytes
	c.parser.args = make([]span, 0, 8)
	c.parser.reset()
	return c
}

// run serves the connection until it ends.
func (c *conn) run() {
	defer func() {
		c.count()
		if p := recover(); p != nil {
			c.srv.log.Error("panic on a connection", "panic", p, "stack", string(debug.Stack()))
		}
	}()
	certificate, ok := c.handshake()
	if !ok {
		return
	}
	c.begin(certificate)
	for {
		served := c.answer()
		if c.flush() != nil {
			return
		}
		if c.ending {
			c.srv.linger(c.raw)
			return
		}
		if c.setReadDeadline() != nil {
			return
		}
		// Shutdown first closes the listener and then moves the deadline of all
		// connections into the past. Whichever of the two comes before our own
		// SetReadDeadline, either Closed says so or the Read below returns at once.
		if c.srv.ln.Closed() {
			if served {
				c.srv.linger(c.raw)
			}
			return
		}
		if cap(c.out.buf) > keptBuffer {
			c.out.buf = make([]byte, 0, firstBuffer)
		}
		n, err := c.raw.Read(c.in[c.w:])
		c.w += n
		c.filled = n
		if n == 0 && err != nil {
			return
		}
	}
}

// handshake completes a TLS connection and returns the name in the client's
// certificate, "" if it showed none that was verified.
func (c *conn) handshake() (certificate string, ok bool) {
	if c.srv.limits.TLS == nil {
		return "", true
	}
	secure := tls.Server(c.raw, c.srv.limits.TLS)
	ctx, cancel := context.WithTimeout(c.srv.base, c.srv.limits.RequestTimeout)
	defer cancel()
	if secure.HandshakeContext(ctx) != nil {
		return "", false // of the client's making: TLS has told it why
	}
	c.raw = secure
	return accept.ClientName(secure.ConnectionState()), true
}

// answer carries out all complete requests in the buffer and makes room for more. It
// reports whether there was one.
func (c *conn) answer() (served bool) {
	for !c.drainBuffer(&served) {
	}
	if served {
		c.requestBy = time.Time{}
		c.count()
	}
	if !c.ending {
		c.makeRoom()
	}
	return served
}

// drainBuffer carries out requests until none is complete. A panic, which can only come
// from an Issuer, is answered in the place of the reply, and done is false.
func (c *conn) drainBuffer(served *bool) (done bool) {
	size := 0
	defer func() {
		if p := recover(); p != nil {
			c.panicked(p)
			c.consume(size)
		}
	}()
	for !c.ending {
		var err error
		if size, err = c.parser.next(c.in[c.r:c.w]); err != nil {
			c.failures++
			c.out.failure("ERR " + err.Error())
			c.ending = true
			break
		}
		if size == 0 {
			break
		}
		*served = true
		if len(c.parser.args) > 0 {
			c.mark, c.cut = len(c.out.buf), false
			c.execute(args{c.in[c.r : c.r+size], c.parser.args})
		}
		c.consume(size)
		c.spill()
	}
	return true
}

func (c *conn) consume(size int) {
	c.r += size
	c.parser.reset()
}

// panicked answers a request whose Issuer has panicked.
func (c *conn) panicked(p any) {
	c.srv.log.Error("panic in a request", "panic", p, "stack", string(debug.Stack()))
	if c.cut {
		c.ending = true // the client would take the error for a part of the reply
		return
	}
	c.out.buf = c.out.buf[:c.mark]
	c.failures++
	c.out.failure(internalError)
}

// makeRoom makes sure that there is something to read into. The parser refuses what
// does not fit into the largest buffer, but for a typed line and a list of heads.
func (c *conn) makeRoom() {
	if c.r > 0 {
		c.w = copy(c.in, c.in[c.r:c.w])
		c.r = 0
	}
	switch {
	case c.w == len(c.in) && c.w >= c.srv.limits.MaxRequestBytes:
		c.failures++
		c.out.failure("ERR " + protocolError("too big request, it has at most "+itoa(c.srv.limits.MaxRequestBytes)+" bytes").Error())
		c.ending = true
	case c.w == len(c.in):
		larger := make([]byte, min(2*len(c.in), c.srv.limits.MaxRequestBytes))
		copy(larger, c.in)
		c.in = larger
	case c.w == 0 && len(c.in) > keptBuffer && c.filled < len(c.in)/4:
		c.in = make([]byte, firstBuffer)
	}
}

// setReadDeadline prepares for a Read: with a part of a request in the buffer its
// deadline runs from its first byte; an idle connection's is renewed when the coarse
// clock has moved on, not on every request, because moving a timer costs as much as
// a request.
func (c *conn) setReadDeadline() error {
	if c.w > 0 {
		if c.requestBy.IsZero() {
			c.requestBy = c.until(c.srv.limits.RequestTimeout)
			c.idleAt = 0
			return c.raw.SetReadDeadline(c.requestBy)
		}
		return nil
	}
	if now := c.srv.ticks.Load(); now != c.idleAt {
		c.idleAt = now
		return c.raw.SetReadDeadline(c.until(c.srv.limits.IdleTimeout + c.srv.tick))
	}
	return nil
}

// until returns the time in d, or before it, when a stranger's time is up: requests that
// are refused do not prolong it.
func (c *conn) until(d time.Duration) time.Time {
	by := time.Now().Add(d)
	if c.issuers == nil && c.loginBy.Before(by) {
		return c.loginBy
	}
	return by
}

// flush writes the gathered replies. The write deadline is renewed like the idle
// deadline: it is a tick longer than asked, so that it never comes early.
func (c *conn) flush() error {
	if len(c.out.buf) == 0 || c.failed != nil {
		return c.failed
	}
	if now := c.srv.ticks.Load(); now != c.writeAt {
		c.writeAt = now
		if c.failed = c.raw.SetWriteDeadline(time.Now().Add(c.srv.limits.WriteTimeout + c.srv.tick)); c.failed != nil {
			return c.failed
		}
	}
	_, c.failed = c.raw.Write(c.out.buf)
	c.out.buf = c.out.buf[:0]
	c.mark, c.cut = 0, true
	return c.failed
}

// relieve writes the replies to earlier requests when a request is about to wait, before it has a reply of its own. After an
// error the request goes on, and then its connection ends.
func (c *conn) relieve() {
	cut := c.cut
	_ = c.flush()
	c.cut = cut
}

// spill writes what there is of a long reply. It reports whether to go on: without a
// client there is no point, and no further request takes IDs.
func (c *conn) spill() bool {
	if len(c.out.buf) >= flushAt {
		_ = c.flush()
	}
	c.ending = c.ending || c.failed != nil
	return c.failed == nil
}

// count passes the counters on.
func (c *conn) count() {
	if c.commands > 0 {
		c.srv.commands.Add(c.commands)
		c.commands = 0
	}
	if c.failures > 0 {
		c.srv.failures.Add(c.failures)
		c.failures = 0
	}
}

// recent remembers the tags that a connection used last, so that using one again
// costs neither an allocation nor a check.
type recent [8]string

// tag returns b as a valid tag. Error: leaf.ErrBadRequest.
func (t *recent) tag(b []byte) (string, error) {
	slot := &t[0]
	if len(b) > 0 {
		slot = &t[(int(b[len(b)-1])+len(b))%len(t)]
	}
	if string(b) == *slot && len(b) > 0 {
		return *slot, nil
	}
	name := string(b)
	if err := leaf.ValidateTag(name); err != nil {
		return "", err
	}
	*slot = name
	return name, nil
}
