package segment

import (
	"context"
	"sync"

	"github.com/leaf-idgen/leaf"
)

// group counts goroutines, so that Close can wait for them on the runtime's
// clock, which a sync.WaitGroup cannot.
type group struct {
	rt leaf.Runtime

	mu     sync.Mutex
	n      int
	closed bool
	idle   chan struct{} // made by wait, closed at n == 0
}

// start runs f in a goroutine, unless the group is closed.
func (g *group) start(f func()) bool {
	g.mu.Lock()
	if g.closed {
		g.mu.Unlock()
		return false
	}
	g.n++
	g.mu.Unlock()
	g.rt.Go(func() {
		defer g.end()
		f()
	})
	return true
}

// enter counts the caller, who calls end, unless the group is closed.
func (g *group) enter() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed {
		return false
	}
	g.n++
	return true
}

func (g *group) end() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.n--
	if g.n == 0 && g.idle != nil {
		close(g.idle)
		g.idle = nil
	}
}

// wait closes the group and returns when all its goroutines have ended, or
// ctx.Err().
func (g *group) wait(ctx context.Context) error {
	g.mu.Lock()
	g.closed = true
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
