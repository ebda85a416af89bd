package main

import (
	"context"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"
)

// load offers requests to a node and counts what becomes of those that end in the
// measured time, which begins after warmUp and lasts slice.
type load struct {
	dial     func() line
	tags     []string // asked for in turn
	issued   *ledger  // by index of tags
	deadline time.Duration
	warmUp   time.Duration
	slice    time.Duration

	sent atomic.Int64 // by all loads so far
}

// measured reports whether a moment lies in the measured time of a load that began then.
func (l *load) measured(began, moment time.Time) bool {
	after := moment.Sub(began) - l.warmUp
	return after >= 0 && after < l.slice
}

// ask sends the next request over a line, in a load that began then.
func (l *load) ask(line line, began time.Time) outcome {
	tag := int(l.sent.Add(1) % int64(len(l.tags)))
	start := time.Now()
	r := line.ask(l.tags[tag], start.Add(l.deadline))
	end := time.Now()
	return outcome{
		reply: r, took: end.Sub(start),
		began: l.measured(began, start), ended: l.measured(began, end),
		twice: r.what == issued && !l.issued.note(tag, r.id),
	}
}

// closed keeps one request under way on each of conns connections. A caller that is
// rejected comes back when it was told to, as clients do. It returns when all are
// answered; the end of ctx ends it early.
func (l *load) closed(ctx context.Context, conns int) *tally {
	var (
		mu    sync.Mutex
		total = newTally()
		wg    sync.WaitGroup
	)
	began := time.Now()
	until := began.Add(l.warmUp + l.slice)
	for range conns {
		wg.Go(func() {
			own, line := newTally(), l.dial()
			defer line.close()
			for time.Now().Before(until) && ctx.Err() == nil {
				o := l.ask(line, began)
				own.note(o)
				pause(ctx, min(o.hint, time.Until(until)))
			}
			mu.Lock()
			defer mu.Unlock()
			total.add(own)
		})
	}
	wg.Wait()
	total.most = int64(conns)
	return total
}

func pause(ctx context.Context, d time.Duration) {
	if d <= 0 {
		return
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}

// open sends rate requests per second on average, at random moments (a Poisson process),
// whatever becomes of those before. Each goes over a line that is free, else over a new
// one. It returns when all are answered; the end of ctx ends it early.
func (l *load) open(ctx context.Context, rate float64) *tally {
	var (
		mu    sync.Mutex // guards total, free and under
		total = newTally()
		free  []line
		under int64
		wg    sync.WaitGroup
	)
	take := func() line {
		mu.Lock()
		defer mu.Unlock()
		under++
		total.most = max(total.most, under)
		if len(free) == 0 {
			return l.dial()
		}
		last := free[len(free)-1]
		free = free[:len(free)-1]
		return last
	}
	give := func(used line, o outcome) {
		mu.Lock()
		defer mu.Unlock()
		under--
		free = append(free, used)
		total.note(o)
	}
	random := rand.New(rand.NewPCG(1, 2))
	began := time.Now()
	due := began
	for due.Sub(began) < l.warmUp+l.slice && ctx.Err() == nil {
		pause(ctx, time.Until(due))
		wg.Go(func() {
			used := take()
			give(used, l.ask(used, began))
		})
		due = due.Add(time.Duration(random.ExpFloat64() / rate * float64(time.Second)))
	}
	wg.Wait()
	for _, l := range free {
		l.close()
	}
	return total
}
