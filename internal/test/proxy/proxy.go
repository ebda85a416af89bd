package proxy

import (
	"context"
	"fmt"
	"net"
	"slices"
	"sync"

	"github.com/leaf-idgen/leaf/internal/test/port"
)

// Proxy forwards the connections that it accepts to one target. Its methods are
// safe for concurrent use; each setting counts for open connections too.
type Proxy struct {
	port   *port.Port      // ours while it refuses, too
	ctx    context.Context //nolint:containedctx // ends with the proxy, not with a call
	cancel context.CancelFunc
	wait   sync.WaitGroup

	mu       sync.Mutex
	target   string
	listener net.Listener // nil while refusing
	links    map[*link]struct{}
	accepted int
	weather  weather
	swallow  [2]bool          // by Side that sent
	held     [2]chan struct{} // by Side that sent; closed when it ends, nil while there is none
	hook     Hook
}

// Side is an end of a connection.
type Side int

// The two sides.
const (
	Client Side = iota
	Server
)

func (s Side) String() string { return [...]string{"client", "server"}[s] }

// Start listens on a port of 127.0.0.1 and forwards to target, a host and
// port. The target need not be there yet: a client whose connection cannot be
// forwarded sees it closed.
func Start(target string) (*Proxy, error) {
	ctx, cancel := context.WithCancel(context.Background())
	claimed, err := port.Claim(ctx)
	p := &Proxy{port: claimed, target: target, ctx: ctx, cancel: cancel, links: map[*link]struct{}{}, weather: weather{random: seeded(0)}}
	if err == nil {
		err = p.Accept()
	}
	if err != nil {
		p.Close()
		return nil, err
	}
	return p, nil
}

// Addr returns the host and port that clients connect to. It never changes.
func (p *Proxy) Addr() string { return p.port.Addr() }

// Open returns the number of connections that are open now, Accepted that of
// all so far.
func (p *Proxy) Open() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.links)
}

// Accepted returns the number of connections accepted since the start.
func (p *Proxy) Accepted() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.accepted
}

// Cut resets all open connections on both sides. New ones are accepted.
func (p *Proxy) Cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for l := range p.links {
		l.cut()
	}
}

// Refuse makes new connections fail with "connection refused" until Accept.
// Open ones stay.
func (p *Proxy) Refuse() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.listener != nil {
		p.listener.Close()
		p.listener = nil
	}
}

// Accept ends a Refuse.
func (p *Proxy) Accept() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := p.ctx.Err(); err != nil {
		return fmt.Errorf("proxy is closed: %w", err)
	}
	if p.listener != nil {
		return nil
	}
	l, err := p.port.Listen(p.ctx)
	if err != nil {
		return fmt.Errorf("proxy for %s: %w", p.target, err)
	}
	p.listener = l
	p.wait.Go(func() { p.serve(l) })
	return nil
}

// Swallow makes what the given sides send vanish while the connections stay
// open; no sides: everything passes again. A connection that is made while both
// are swallowed is not forwarded, then or later.
func (p *Proxy) Swallow(from ...Side) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.swallow = [2]bool{}
	for _, s := range from {
		p.swallow[s] = true
	}
}

// Hold keeps what the given sides send on its way while the connections stay
// open; no sides: it arrives, in order, and everything passes again. So does a
// network that was down for a while: to the server a request comes late, from a
// client that may have given up. A connection that is made while both sides are
// held is not forwarded, then or later.
func (p *Proxy) Hold(from ...Side) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for s, held := range p.held {
		switch hold := slices.Contains(from, Side(s)); {
		case hold && held == nil:
			p.held[s] = make(chan struct{})
		case !hold && held != nil:
			close(held)
			p.held[s] = nil
		}
	}
}

// Retarget makes new connections go to another target, a host and port, as a
// virtual address that moves. Open ones stay where they are: see Cut.
func (p *Proxy) Retarget(target string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.target = target
}

// Close cuts everything and waits for the proxy's goroutines. It is idempotent.
func (p *Proxy) Close() {
	p.cancel()
	p.Refuse()
	p.Cut()
	p.wait.Wait()
	p.port.Release()
}

func (p *Proxy) serve(l net.Listener) {
	for {
		client, err := l.Accept()
		if err != nil {
			return // Refuse or Close
		}
		p.wait.Go(func() { p.forward(client) })
	}
}

// forward lives as long as the connection.
func (p *Proxy) forward(client net.Conn) {
	l := &link{proxy: p, done: make(chan struct{}), ends: [2]net.Conn{Client: client}}
	defer l.cut()

	p.mu.Lock()
	p.links[l] = struct{}{}
	p.accepted++
	lost := func(s Side) bool { return p.swallow[s] || p.held[s] != nil }
	forwarded := !lost(Client) || !lost(Server)
	target := p.target
	closed := p.ctx.Err() != nil // Close may have cut before this link was in the list
	p.mu.Unlock()
	defer func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		delete(p.links, l)
	}()
	if closed {
		return
	}
	if !forwarded {
		l.drain()
		return
	}
	var d net.Dialer
	server, err := d.DialContext(p.ctx, "tcp", target)
	if err != nil {
		l.close(false)
		return
	}
	if !l.connect(server) {
		return
	}
	var both sync.WaitGroup
	both.Go(func() { l.pump(Client, Server) })
	both.Go(func() { l.pump(Server, Client) })
	both.Wait()
	l.close(false)
}
