package accept

import (
	"io"
	"net"
	"time"
)

const (
	// maxRefusals is how many connections beyond the limit are told why at the same
	// time. Those beyond it too are closed without a word.
	maxRefusals = 64

	// refusalTime bounds how long one refused connection is kept.
	refusalTime = time.Second
)

// mayRefuse reports whether raw can be told why. It has its deadline then, before Drain
// can see it. It is called with mu held.
func (l *Listener) mayRefuse(raw net.Conn) bool {
	return l.cfg.Refuse != nil && len(l.refusing) < maxRefusals && raw.SetDeadline(time.Now().Add(refusalTime)) == nil
}

func (l *Listener) refuse(raw net.Conn) {
	defer l.finished()
	defer func() {
		_ = raw.Close()
		l.mu.Lock()
		defer l.mu.Unlock()
		delete(l.refusing, raw)
	}()
	l.cfg.Refuse(raw)
}

// Linger ends our direction of a connection and discards what the client still sends, up
// to most bytes, until it has seen the end of our last reply: closing a socket with
// unread bytes sends a reset, which can destroy the reply on its way. It takes as long as
// the read deadline of raw allows.
func Linger(raw net.Conn, most int64) {
	if half, ok := raw.(halfCloser); ok && half.CloseWrite() == nil {
		_, _ = io.Copy(io.Discard, io.LimitReader(raw, most))
	}
}
