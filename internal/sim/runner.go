package sim

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"runtime/debug"
	"sync"
	"time"
)

// Campaign is a run of many seeds. Every field has a useful zero value but Seeds.
type Campaign struct {
	First, Seeds uint64        // seeds First to First+Seeds-1
	Only         string        // as in Options
	Workers      int           // seeds at a time; default GOMAXPROCS
	Twice        bool          // run each seed twice: the hashes must be equal
	KeepGoing    bool          // go on after a failure
	Patience     time.Duration // real time that one seed may take; default 30 s

	// Progress is told after every seed, by one goroutine at a time.
	Progress func(soFar *Report)

	run func(seed uint64, opts Options) Result // Run, but in tests of the runner
}

var (
	// ErrHang says that a seed took longer than Campaign.Patience. The text has the stacks of all
	// goroutines. What hangs cannot be ended: the process should.
	ErrHang = errors.New("sim: the seed hangs")

	// ErrDiffers says that two runs of one seed made different decisions.
	ErrDiffers = errors.New("sim: two runs of one seed differ")
)

// RunSeeds runs a campaign. It ends early (Report.Cut) when ctx ends, at the first
// failure unless c.KeepGoing, and when a seed hangs.
func RunSeeds(ctx context.Context, c Campaign) *Report {
	if c.Workers <= 0 {
		c.Workers = runtime.GOMAXPROCS(0)
	}
	if c.Patience <= 0 {
		c.Patience = 30 * time.Second
	}
	if c.run == nil {
		c.run = Run
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	seeds, results := make(chan uint64), make(chan Result)
	watch := &watch{since: map[uint64]time.Time{}}
	go func() {
		defer close(seeds)
		for i := range c.Seeds {
			select {
			case seeds <- c.First + i:
			case <-ctx.Done():
				return
			}
		}
	}()
	var workers sync.WaitGroup
	for range c.Workers {
		workers.Go(func() {
			for seed := range seeds {
				watch.begins(seed)
				r := runSafely(seed, c)
				watch.ends(seed)
				results <- r
			}
		})
	}
	go func() {
		workers.Wait()
		close(results)
	}()
	return c.collect(cancel, results, watch)
}

// collect adds up results until there are no more.
func (c Campaign) collect(cancel func(), results <-chan Result, watch *watch) *Report {
	report := newReport(c)
	tick := time.NewTicker(min(time.Second, c.Patience))
	defer tick.Stop()
	for {
		select {
		case r, ok := <-results:
			if !ok {
				return report
			}
			report.add(r)
			if r.Err != nil && !c.KeepGoing {
				cancel()
			}
			if c.Progress != nil {
				c.Progress(report)
			}
		case <-tick.C:
			if seed, ok := watch.hangs(c.Patience); ok {
				cancel()
				go func() { // a worker that still lives must not block for ever
					for range results { // no longer needed
					}
				}()
				report.add(Result{Seed: seed, Err: fmt.Errorf("%w: %v without an end\n%s", ErrHang, c.Patience, stacks())})
				return report
			}
		}
	}
}

// runSafely is Run, once or twice, with a panic as a failure.
func runSafely(seed uint64, c Campaign) (r Result) {
	defer func() {
		if p := recover(); p != nil {
			r.Seed, r.Err = seed, fmt.Errorf("panic: %v\n%s", p, debug.Stack())
		}
	}()
	r = c.run(seed, Options{Only: c.Only})
	if !c.Twice || r.Err != nil {
		return r
	}
	if again := c.run(seed, Options{Only: c.Only}); again.Hash != r.Hash || again.IDs != r.IDs {
		r.Err = fmt.Errorf("%w: hash %x with %d IDs, then %x with %d", ErrDiffers, r.Hash, r.IDs, again.Hash, again.IDs)
	}
	return r
}

// watch knows since when each seed under way runs.
type watch struct {
	mu    sync.Mutex
	since map[uint64]time.Time
}

func (w *watch) begins(seed uint64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.since[seed] = time.Now()
}

func (w *watch) ends(seed uint64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.since, seed)
}

// hangs returns a seed that runs for longer than patience.
func (w *watch) hangs(patience time.Duration) (seed uint64, ok bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for seed, since := range w.since {
		if time.Since(since) > patience {
			return seed, true
		}
	}
	return 0, false
}

// stacks returns what all goroutines are doing.
func stacks() []byte {
	buf := make([]byte, 1<<20)
	return buf[:runtime.Stack(buf, true)]
}
