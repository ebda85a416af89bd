package client

import (
	"context"
	"sync"

	"github.com/leaf-idgen/leaf"
)

// tasks counts goroutines, so that Close can wait for them.
type tasks struct {
	mu     sync.Mutex
	n      int
	closed bool
	empty  chan struct{} // closed when n falls to 0; nil: no goroutine waits for that
}

// start runs f in a goroutine, or returns false after close.
func (t *tasks) start(rt leaf.Runtime, f func()) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		return false
	}
	t.n++
	rt.Go(func() {
		defer t.done()
		f()
	})
	return true
}

// enter counts the calling goroutine until it calls done, or returns false after close.
func (t *tasks) enter() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		return false
	}
	t.n++
	return true
}

func (t *tasks) done() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.n--; t.n == 0 && t.empty != nil {
		close(t.empty)
		t.empty = nil
	}
}

// close makes start refuse.
func (t *tasks) close() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.closed = true
}

// wait returns when nothing runs, or with the error of ctx.
func (t *tasks) wait(ctx context.Context, rt leaf.Runtime) error {
	t.mu.Lock()
	if t.n == 0 {
		t.mu.Unlock()
		return nil
	}
	if t.empty == nil {
		t.empty = make(chan struct{})
	}
	empty := t.empty
	t.mu.Unlock()
	return rt.Wait(ctx, empty, 0)
}
