package httpd

import (
	"context"
	"errors"
	"io"
	"net"
	"runtime/debug"
	"time"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/internal/requestid"
	"github.com/leaf-idgen/leaf/internal/server/accept"
)

// FastHandler answers a request of the fast path: it appends the body of a 200
// text/plain reply to body, or returns an error, which is answered as a problem.
// The key is one valid tag name; ctx ends when Shutdown gives up waiting. It runs
// on the connection's goroutine and may block.
type FastHandler func(ctx context.Context, mode Mode, key string, body []byte) ([]byte, error)

// Opener returns the FastHandler for what a client shows of itself, or an error, which
// is the answer to its request. A connection keeps the handler as long as it shows the
// same.
type Opener func(shown leaf.Credentials) (FastHandler, error)

const (
	// fastHead is the size of a connection's read buffer, and so the longest head
	// that the fast path answers. Real ones of this kind have 60 to 600 bytes.
	fastHead = 2 << 10

	// flushAt is how many bytes of replies to pipelined requests are gathered before
	// they are written.
	flushAt = 4 << 10
)

// outcome is how the fast path is done with a connection.
type outcome uint8

const (
	closed   outcome = iota // nothing more to do
	handOver                // the bytes in rest() and the future belong to net/http
)

// fastConn is one connection on the fast path. One goroutine owns it; Shutdown
// touches raw only.
type fastConn struct {
	srv *Server
	raw net.Conn
	ctx context.Context //nolint:containedctx // of all requests

	in   [fastHead]byte
	r, w int    // in[r:w] is read but not answered
	out  []byte // replies that are not written yet
	lost error  // why replies could not be written: nothing may follow a part of one
	body []byte // room for the body of one reply
	key  string // of the last request: a client that stays with one tag costs no allocation

	shown   leaf.Credentials // with the last request
	handler FastHandler      // for shown; nil: not opened

	answered bool // whether a request was, so that bytes that are left start a later one

	headBy  time.Time // when the head that is being received must be complete; zero: none is
	idleAt  *instant  // when the read deadline for idling was set; nil: it is not set
	writeAt *instant  // when the write deadline was set
}

func (c *fastConn) rest() []byte { return c.in[c.r:c.w] }

// run serves the connection until it is done with it. A panic, which can only
// come from a handler that does not recover by itself, ends the connection.
func (c *fastConn) run() (end outcome) {
	defer func() {
		if p := recover(); p != nil {
			c.srv.log.Error("panic on a connection", "panic", p, "stack", string(debug.Stack()))
			end = closed
		}
	}()
	c.headBy = time.Now().Add(c.srv.limits.HeaderTimeout)
	if c.raw.SetReadDeadline(c.headBy) != nil || !c.secure() {
		return closed
	}
	for {
		v, last := c.answer()
		if c.flush() != nil || last {
			return closed
		}
		if v == foreign && c.worthHandingOver() {
			return handOver
		}
		if !c.makeRoom() {
			return handOver // a head longer than the buffer
		}
		if c.setReadDeadline() != nil {
			return closed
		}
		// Shutdown first closes the listener and then moves the deadline of all
		// connections into the past. Whichever of the two comes before our own
		// SetReadDeadline, either Closed says so or the Read below returns at once.
		if c.srv.ln.Closed() {
			return closed
		}
		n, err := c.raw.Read(c.in[c.w:])
		c.w += n
		if n == 0 && err != nil {
			if errors.Is(err, io.EOF) && c.worthHandingOver() {
				return handOver // half a request: net/http knows what to say
			}
			return closed
		}
	}
}

// worthHandingOver reports whether net/http would look at the bytes that are left.
// After a reply it waits for nextHead bytes, and closes silently if the connection
// ends before: some clients send an empty line behind a request.
func (c *fastConn) worthHandingOver() bool {
	const nextHead = 4
	if c.answered {
		return c.w-c.r >= nextHead
	}
	return c.w > c.r
}

// answer handles all complete requests in the buffer. The verdict is about the
// bytes that are left; last says that the client was told the connection ends.
func (c *fastConn) answer() (v verdict, last bool) {
	for {
		h, v := parseHead(c.in[c.r:c.w])
		if v != understood {
			return v, false
		}
		if string(h.key) != c.key {
			c.key = string(h.key) // a copy: issuers may keep it
		}
		c.r += h.size
		c.answered = true
		c.headBy = time.Time{}

		body := c.body[:0]
		ctx, id := c.ctx, requestid.Of(h.id, h.trace)
		if c.srv.limits.RequestIDs() {
			ctx, id = withID(ctx, id)
		}
		handler, err := c.handlerFor(h, id)
		if err == nil {
			body, err = handler(ctx, h.mode, c.key, body)
		}
		last = c.srv.leaving.Load() || c.srv.ln.Closed()
		at := c.srv.clock.now.Load()
		if err != nil {
			e, id := report(c.srv.log, err, string(id))
			c.out = appendProblem(c.out, e, id, at, last)
		} else {
			c.body = body
			c.out = appendText(c.out, body, id, at, last)
		}
		if last {
			return v, true
		}
		if c.lost != nil || len(c.out) >= flushAt && c.flush() != nil {
			return v, true
		}
	}
}

// withID returns ctx with the ID of a request, a new one if it brings none.
func withID(ctx context.Context, brought []byte) (context.Context, []byte) {
	id := string(brought)
	if id == "" {
		id = requestid.New()
	}
	return requestid.With(ctx, id), []byte(id)
}

// handlerFor returns the handler for the credentials in h.
func (c *fastConn) handlerFor(h head, id []byte) (FastHandler, error) {
	if c.handler != nil && string(h.token) == c.shown.Token && string(h.name) == c.shown.Name {
		return c.handler, nil
	}
	c.handler = nil
	c.shown.Address = accept.Address(c.raw)
	c.shown.Token, c.shown.Name, c.shown.Request = string(h.token), string(h.name), string(id)
	handler, err := c.srv.open(c.shown)
	if err != nil {
		return nil, err
	}
	c.handler = handler
	return handler, nil
}

// makeRoom makes sure that there is something to read into.
func (c *fastConn) makeRoom() bool {
	if c.r > 0 {
		c.w = copy(c.in[:], c.in[c.r:c.w])
		c.r = 0
	}
	return c.w < len(c.in)
}

// setReadDeadline prepares for a Read: with half a head in the buffer its
// deadline runs from its first byte; an idle connection's is renewed when the
// coarse clock has moved on, not on every request, because moving a timer costs as
// much as parsing a head.
func (c *fastConn) setReadDeadline() error {
	if c.w > 0 {
		if c.headBy.IsZero() {
			c.headBy = time.Now().Add(c.srv.limits.HeaderTimeout)
			c.idleAt = nil
			return c.raw.SetReadDeadline(c.headBy)
		}
		return nil
	}
	if !c.headBy.IsZero() {
		return nil // the first request of the connection is still awaited
	}
	if now := c.srv.clock.now.Load(); now != c.idleAt {
		c.idleAt = now
		return c.raw.SetReadDeadline(time.Now().Add(c.srv.limits.IdleTimeout + c.srv.tick))
	}
	return nil
}

// flush writes the gathered replies. The write deadline is renewed like the idle
// deadline: it is a tick longer than asked, so that it never comes early. After an error
// it writes no more: the client may have a part of a reply, and would take the next one for
// the rest of it.
func (c *fastConn) flush() error {
	if len(c.out) == 0 || c.lost != nil {
		return c.lost
	}
	if now := c.srv.clock.now.Load(); now != c.writeAt {
		c.writeAt = now
		if c.lost = c.raw.SetWriteDeadline(time.Now().Add(c.srv.limits.WriteTimeout + c.srv.tick)); c.lost != nil {
			return c.lost
		}
	}
	_, c.lost = c.raw.Write(c.out)
	c.out = c.out[:0]
	return c.lost
}
