package zookeeper

import (
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// servers chooses whom the client asks next. Unlike the client's own choice it
// does not resolve names once and for all, and the first attempt at each server
// after a loss comes at once.
type servers struct {
	mu    sync.Mutex
	list  []string
	next  int
	tried int // since a session was there
}

// Init implements zk.HostProvider.
func (s *servers) Init(list []string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.list = list
	return nil
}

// Len implements zk.HostProvider.
func (s *servers) Len() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.list)
}

// Next implements zk.HostProvider. The client pauses for a second, and gives up the
// requests that it has not sent, if pause is true.
func (s *servers) Next() (server string, pause bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	server = s.list[s.next]
	s.next = (s.next + 1) % len(s.list)
	pause = s.tried > 0 && s.tried%len(s.list) == 0
	s.tried++
	return server, pause
}

// Connected implements zk.HostProvider.
func (s *servers) Connected() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.tried = 0
}

// wire is a connection that does not wait for its session longer than limit; the
// client itself would wait ten times as long as for any other answer, while other
// servers might give one. It also remembers when it last heard from the server.
type wire struct {
	net.Conn

	limit    time.Duration
	greeted  atomic.Bool
	lastRead *atomic.Int64 // Unix ns
	forget   func() bool   // the session no longer closes it
}

// Close implements net.Conn.
func (w *wire) Close() error {
	w.forget()
	return w.Conn.Close()
}

// SetReadDeadline implements net.Conn. Its first call is for the session.
func (w *wire) SetReadDeadline(t time.Time) error {
	if soon := time.Now().Add(w.limit); w.greeted.CompareAndSwap(false, true) && t.After(soon) {
		t = soon
	}
	return w.Conn.SetReadDeadline(t)
}

// Read implements net.Conn.
func (w *wire) Read(p []byte) (int, error) {
	n, err := w.Conn.Read(p)
	if n > 0 {
		w.lastRead.Store(time.Now().UnixNano())
	}
	return n, err
}
