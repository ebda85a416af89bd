package bounded

import (
	"context"
	"sync"

	"github.com/leaf-idgen/leaf"
)

// Group counts goroutines, like a sync.WaitGroup, but waits on the runtime's clock and can be
// closed. All methods are safe for concurrent use.
type Group struct {
	rt leaf.Runtime

	mu     sync.Mutex
	n      int
	closed bool
	idle   chan struct{} // made by Idle, closed at n == 0
}

// NewGroup returns an open group.
func NewGroup(rt leaf.Runtime) *Group { return &Group{rt: rt} }

// Start runs f in a goroutine, unless the group is closed.
func (g *Group) Start(f func()) bool {
	if !g.Enter() {
		return false
	}
	g.rt.Go(func() {
		defer g.End()
		f()
	})
	return true
}

// Enter counts the caller and returns true, unless the group is closed. The caller then calls
// End.
func (g *Group) Enter() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed {
		return false
	}
	g.n++
	return true
}

// End takes back an Enter.
func (g *Group) End() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.n--
	if g.n == 0 && g.idle != nil {
		close(g.idle)
		g.idle = nil
	}
}

// Close makes Start and Enter refuse, and reports whether the group was open.
func (g *Group) Close() (first bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	first, g.closed = !g.closed, true
	return first
}

// Closed reports whether the group is closed.
func (g *Group) Closed() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.closed
}

// Idle returns when no goroutine of the group runs, or ctx.Err(). An open group may have new
// ones by then.
func (g *Group) Idle(ctx context.Context) error {
	g.mu.Lock()
	if g.n == 0 {
		g.mu.Unlock()
		return nil
	}
	if g.idle == nil {
		g.idle = make(chan struct{})
	}
	idle := g.idle
	g.mu.Unlock()
	return g.rt.Wait(ctx, idle, 0)
}

// Wait closes the group and returns when all its goroutines have ended, or ctx.Err().
func (g *Group) Wait(ctx context.Context) error {
	g.Close()
	return g.Idle(ctx)
}
