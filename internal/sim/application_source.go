package sim

import (
	"context"
	"fmt"
	"time"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/internal/sim/sched"
	"github.com/leaf-idgen/leaf/internal/sim/world"
)

// source is the leaf.Issuer under the cache of one process of an application: each call
// is one request to a random node that runs.
type source struct {
	app  *application
	proc *sched.Process
}

func (a *application) source() *source { return &source{a, a.proc} }

// Next implements leaf.Issuer.
func (s *source) Next(ctx context.Context, tag string) (int64, error) {
	r, err := s.NextN(ctx, tag, 1)
	if err != nil {
		return 0, err
	}
	return r[0].Lo, nil
}

// NextN implements leaf.Issuer. The node serves a request that has arrived, whether or not
// the caller still waits for the reply.
func (s *source) NextN(ctx context.Context, tag string, n int) ([]leaf.Range, error) {
	a, w := s.app, s.app.m.w
	nodes := a.m.running()
	if len(nodes) == 0 {
		s.proc.Sleep(a.delay())
		return nil, fmt.Errorf("%w: no node runs", leaf.ErrNotReady)
	}
	e := nodes[w.rng.IntN(len(nodes))]
	var got []leaf.Range
	var failed error
	answered, done := false, make(chan struct{})
	serve := func() {
		if e.proc.Dead() {
			return // the deadline tells
		}
		e.proc.Go(func() {
			ranges, err := e.call(tag, n, time.Second, nil)
			if a.mishap(world.ReplyLost) {
				return
			}
			w.sched.After(a.delay(), func() {
				if !answered {
					answered, got, failed = true, ranges, err
					close(done)
				}
			})
		})
	}
	switch delay := a.delay(); {
	case a.mishap(world.RequestLost):
	case a.mishap(world.CallDelayed):
		w.sched.After(delay+w.upTo(time.Minute), serve)
	default:
		w.sched.After(delay, serve)
		if a.mishap(world.CallDoubled) {
			w.sched.After(delay+w.upTo(time.Minute), serve)
		}
	}
	if err := s.proc.Wait(ctx, done, 0); err != nil {
		return nil, fmt.Errorf("%w: %w", errNoReply, err)
	}
	if failed != nil {
		return nil, failed
	}
	a.arrived(tag, got)
	return got, nil
}

func (a *application) delay() time.Duration { return time.Millisecond + a.m.w.upTo(3*time.Millisecond) }

// mishap reports whether this one happens to a call.
func (a *application) mishap(k world.Kind) bool {
	if a.weather == 0 || a.m.w.rng.Float64() >= a.weather {
		return false
	}
	a.m.w.faults.Hit(k)
	return true
}
