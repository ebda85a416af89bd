package accept

import (
	"errors"
	"net"
	"time"
)

// Begin notes that a server starts, and runs each of beside on a goroutine of its own.
// It returns false and does nothing after Close, and an error if it was called before.
func (l *Listener) Begin(beside ...func()) (ok bool, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.serving:
		return false, errors.New("Serve was called before")
	case l.closed.Load():
		return false, nil
	}
	l.serving = true
	for _, f := range beside {
		l.beside.Go(f)
	}
	return true, nil
}

// Serve is Begin, and then runs handle on a goroutine of its own for each connection. It
// returns nil once the Listener is closed, else the listener's error. It closes no
// connection: handle must, or the code that handle passes the connection to.
func (l *Listener) Serve(handle func(*Conn), beside ...func()) error {
	if ok, err := l.Begin(beside...); !ok {
		return err
	}
	for {
		c, err := l.next(true)
		if err != nil {
			if l.Closed() {
				return nil
			}
			return err
		}
		go func() {
			defer l.finished()
			handle(c)
		}()
	}
}

// Drain is Close, and ends the reads of connections that wait for their clients. The handlers
// of these connections decide what follows.
func (l *Listener) Drain() {
	_ = l.Close()
	l.draining.Do(l.interrupt)
}

// interrupt holds mu, because a connection that Spare has returned for must not be
// touched any more. Setting a deadline does not wait for anything.
func (l *Listener) interrupt() {
	past := time.Unix(1, 0)
	l.mu.Lock()
	defer l.mu.Unlock()
	for c := range l.conns {
		if !c.spared {
			_ = c.SetReadDeadline(past) // fails on a closed one only
		}
	}
	for raw := range l.refusing {
		_ = raw.SetReadDeadline(past)
	}
}

// Drained is closed when the Listener is, and nothing runs that Serve has started. What
// runs beside does not count.
func (l *Listener) Drained() <-chan struct{} { return l.drained }

// Wait waits for what runs beside.
func (l *Listener) Wait() { l.beside.Wait() }

// Cut is Close, and closes all connections.
func (l *Listener) Cut() {
	_ = l.Close()
	l.CloseIf(func(*Conn) bool { return true })
	l.mu.Lock()
	refusing := make([]net.Conn, 0, len(l.refusing))
	for raw := range l.refusing {
		refusing = append(refusing, raw)
	}
	l.mu.Unlock()
	for _, raw := range refusing {
		_ = raw.Close()
	}
}

// CloseIf closes the open connections that condemned returns true for. It must not
// block.
func (l *Listener) CloseIf(condemned func(*Conn) bool) {
	var found []*Conn
	l.mu.Lock()
	for c := range l.conns {
		if condemned(c) {
			found = append(found, c)
		}
	}
	l.mu.Unlock()
	for _, c := range found {
		_ = c.Close()
	}
}

// Every calls do every d, with the time, until stop is closed. It is something to run
// beside Serve.
func Every(d time.Duration, stop <-chan struct{}, do func(now time.Time)) {
	t := time.NewTicker(d)
	defer t.Stop()
	for {
		select {
		case now := <-t.C:
			do(now)
		case <-stop:
			return
		}
	}
}
