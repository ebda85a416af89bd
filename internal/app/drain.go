package app

import (
	"context"
	"sync"
	"time"
)

// How far a stop is, for people.
const (
	stageServing  = "serving"
	stageLeaving  = "not ready any more, waiting for clients to move"
	stageEnding   = "ending connections"
	stageReturned = "returning unused IDs"
)

// drain is the way of a node out of its cluster. One with a channel in asked and nothing
// else is a node that serves.
type drain struct {
	mu    sync.Mutex
	stage string         // "" stands for stageServing
	delay *time.Duration // what Drain asked for; nil: the usual one
	usual time.Duration  // drain-delay

	asked chan struct{} // closed by the first Drain
	once  sync.Once
}

func (d *drain) enter(stage string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.stage = stage
}

// now returns the stage, and whether the node has left.
func (d *drain) now() (stage string, leaving bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.stage == "" {
		return stageServing, false
	}
	return d.stage, true
}

// Drain implements manage.NodeSite.
func (n *node) Drain(delay time.Duration) {
	d := &n.app.drain
	d.once.Do(func() {
		if delay >= 0 {
			d.mu.Lock()
			d.delay = &delay
			d.mu.Unlock()
		}
		close(d.asked)
	})
}

// drainDelay returns how long the node serves after it said that it leaves.
func (a *App) drainDelay() time.Duration {
	a.drain.mu.Lock()
	defer a.drain.mu.Unlock()
	if a.drain.delay != nil {
		return *a.drain.delay
	}
	return a.drain.usual
}

// setUsual changes the delay of a stop for which Drain has asked for none.
func (d *drain) setUsual(delay time.Duration) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.usual = delay
}

// leave makes the node unready and withdraws it from the directory, and serves on for the
// delay, so that clients and load balancers move before their connections end. It ends early with ctx.
func (a *App) leave(ctx context.Context) {
	a.drain.enter(stageLeaving)
	a.presence.withdraw(ctx, a.log)
	a.order.giveAway(ctx)
	delay := a.drainDelay()
	if delay <= 0 {
		return
	}
	for _, s := range a.public {
		if s.leave != nil {
			s.leave()
		}
	}
	a.log.Info("serving until clients have moved", "for", delay)
	t := time.NewTimer(delay)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}
