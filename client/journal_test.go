package client_test

import (
	"context"
	"log/slog"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leaf-idgen/leaf/client"
)

// handler is a log handler of the application.
type handler struct {
	slog.Handler
	handle func()
	lines  atomic.Int64
}

func (h *handler) Enabled(context.Context, slog.Level) bool { return true }

func (h *handler) Handle(context.Context, slog.Record) error {
	h.lines.Add(1)
	h.handle()
	return nil
}

// TestLogHandler: what the application's log handler does delays no call: it may block,
// and it may ask the client.
func TestLogHandler(t *testing.T) {
	for _, c := range []struct {
		name  string
		event func(cl *cluster) // what the client reports
	}{
		{"a node is ejected", func(cl *cluster) { cl.nodes["a"].set(func(f *fake) { f.down = true }) }},
		{"a node drains", func(cl *cluster) { cl.nodes["a"].set(func(f *fake) { f.draining = true }) }},
		{"no list", func(cl *cluster) { cl.set(nil, errDown) }},
	} {
		for _, kind := range []string{"blocks", "asks"} {
			t.Run(c.name+", the handler "+kind, func(t *testing.T) {
				// A call that waits for a lock makes no simulated time pass.
				watch := time.AfterFunc(20*time.Second, func() { panic("a call waits for the log handler") })
				defer watch.Stop()
				bubble(t, func(t *testing.T) {
					cl := newCluster(node("a", "", 100), node("b", "", 100))
					var asked atomic.Pointer[client.Client]
					free := make(chan struct{})
					h := &handler{handle: func() {
						if kind == "blocks" {
							<-free
						} else {
							asked.Load().Stats()
						}
					}}
					leafClient := cl.client(t, client.WithLogger(slog.New(h)))
					asked.Store(leafClient)
					time.Sleep(5 * time.Second)
					c.event(cl)
					for end := time.Now().Add(10 * time.Second); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
						calls(t, leafClient, 1)
					}
					if h.lines.Load() == 0 {
						t.Error("the handler was not called")
					}
					close(free)
				})
			})
		}
	}
}

// TestLogHandlerAndClose: Close does not wait longer than its context for a handler that
// blocks, and what was reported before is written as soon as the handler lets it.
func TestLogHandlerAndClose(t *testing.T) {
	bubble(t, func(t *testing.T) {
		cl := newCluster(node("a", "", 100))
		free := make(chan struct{})
		h := &handler{handle: func() { <-free }}
		c := cl.client(t, client.WithLogger(slog.New(h)))
		synctest.Wait()
		cl.nodes["a"].set(func(f *fake) { f.down = true })
		time.Sleep(5 * time.Second)
		cl.set(nil, errDown)
		time.Sleep(5 * time.Second)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		start := time.Now()
		if err := c.Close(ctx); err == nil || time.Since(start) != time.Second {
			t.Errorf("Close = %v after %v, want the deadline's error after 1s", err, time.Since(start))
		}
		if n := h.lines.Load(); n != 1 {
			t.Errorf("%d lines while the first one blocks", n)
		}
		close(free)
		synctest.Wait()
		if n := h.lines.Load(); n != 2 {
			t.Errorf("%d lines after the handler has let go, want 2", n)
		}
	})
}
