package forward

import (
	"sync/atomic"
	"time"

	"github.com/leaf-idgen/leaf"
)

// waiting is how many calls wait for an owner at once, and how many may.
type waiting struct{ now, most atomic.Int64 }

// retryFull is when a call too many may come again, about: owners change in less, unless they crash.
const retryFull = 250 * time.Millisecond

// place is that of one call among those that wait.
type place struct {
	of   *waiting
	held bool
}

// take lets the call wait, until it leaves. leaf.ErrNotReady with a hint if too many wait.
func (p *place) take(rt leaf.Runtime) error {
	if p.held {
		return nil
	}
	if p.of.now.Add(1) > p.of.most.Load() {
		p.of.now.Add(-1)
		return leaf.Later(leaf.ErrNotReady, "too many requests wait for the owners of tags in strict order", rt.Jitter(retryFull))
	}
	p.held = true
	return nil
}

// leave ends the wait, if there was one.
func (p *place) leave() {
	if p.held {
		p.of.now.Add(-1)
	}
}
