package proxy

import (
	"errors"
	"io"
	"net"
	"sync"
	"time"
)

// link is one client's connection and its continuation to the target.
type link struct {
	proxy *Proxy
	done  chan struct{} // closed when broken

	mu       sync.Mutex
	ends     [2]net.Conn // by Side; the server's is nil until connected
	broken   bool
	cutReply bool // the next bytes from the server end the link
}

// connect adds the server's end. It reports false if the link was cut meanwhile.
func (l *link) connect(server net.Conn) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.broken {
		server.Close()
		return false
	}
	l.ends[Server] = server
	return true
}

// cut resets both connections: a reset, unlike an orderly end, is also what a
// client sees when a server or a link dies.
func (l *link) cut() { l.close(true) }

// close ends both connections. Without reset, what was written still arrives.
func (l *link) close(reset bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.broken {
		return
	}
	l.broken = true
	close(l.done)
	for _, c := range l.ends {
		if tcp, ok := c.(*net.TCPConn); ok {
			if reset {
				_ = tcp.SetLinger(0)
			}
			tcp.Close()
		}
	}
}

func (l *link) end(s Side) net.Conn {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.ends[s]
}

// drain reads what the client sends into nothing.
func (l *link) drain() { _, _ = io.Copy(io.Discard, l.end(Client)) }

// pump forwards what one side sends until that side is done or the link is cut.
// An orderly end is passed on, so that the other side may still finish.
func (l *link) pump(from, to Side) {
	source, sink := l.end(from), l.end(to)
	buffer := make([]byte, 64<<10)
	for {
		n, err := source.Read(buffer)
		if n > 0 && !l.pass(from, buffer[:n], sink) {
			l.cut()
			return
		}
		if errors.Is(err, io.EOF) {
			if tcp, ok := sink.(*net.TCPConn); ok {
				_ = tcp.CloseWrite()
			}
			return
		}
		if err != nil {
			l.cut()
			return
		}
	}
}

// pass forwards one piece, and reports false if the link must end.
func (l *link) pass(from Side, piece []byte, sink net.Conn) bool {
	p := l.proxy
	if !l.waitWhileHeld(from) {
		return false
	}
	p.mu.Lock()
	latency, cut := p.weather.draw(len(piece))
	swallow, hook := p.swallow[from], p.hook
	p.mu.Unlock()

	if cut {
		return false
	}
	if latency > 0 {
		delay := time.NewTimer(latency)
		defer delay.Stop()
		select {
		case <-delay.C:
		case <-l.done:
			return false
		}
	}
	if swallow {
		return true
	}
	if from == Server && l.replyIsCut() {
		return false
	}
	if hook != nil {
		switch hook(from, piece) {
		case Pass:
		case Drop:
			return true
		case CutNow:
			return false
		case CutReply:
			// Before the request goes on: its reply must find this set.
			l.setCutReply()
		}
	}
	_, err := sink.Write(piece)
	return err == nil
}

// waitWhileHeld reports false if the link was cut.
func (l *link) waitWhileHeld(from Side) bool {
	p := l.proxy
	for {
		p.mu.Lock()
		held := p.held[from]
		p.mu.Unlock()
		if held == nil {
			return true
		}
		select {
		case <-held: // and perhaps held again
		case <-l.done:
			return false
		}
	}
}
