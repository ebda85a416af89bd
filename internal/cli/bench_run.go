package cli

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/idlog"
)

// benchTarget is what a request asks for.
type benchTarget struct {
	key       string // in logs: the tag, or sequence/entity
	snowflake bool
	sequence  string // "": it is none
	entity    string // of the sequence
}

// benchNode is a node that speaks one protocol.
type benchNode interface {
	// conn returns a connection for one client. It is opened when it is first used,
	// and again after it broke.
	conn(count int) benchConn
	name() string
}

// benchConn is one client's way to one node. It is used by one goroutine.
type benchConn interface {
	// take asks for IDs once and waits for them. The ranges are in the order of the
	// reply and valid until the next call. An error is a *benchError, after which no ID
	// of the reply counts.
	take(what benchTarget) ([]leaf.Range, error)
	close()
}

// benchError is why a request yielded no IDs.
type benchError struct {
	kind   string // counted under this name: "503 not_ready", "timeout"
	broken bool   // the connection, not the answer
	final  error  // why the same request will never yield IDs; nil if it may
}

func (e *benchError) Error() string { return e.kind }

// bench is one run.
type bench struct {
	targets []benchTarget
	nodes   []benchNode
	count   int
	clients int
	rate    float64           // requests per second, 0 for no schedule
	limit   int64             // stop after so many IDs, 0 for none
	logs    [][]*idlog.Writer // by client and node, or nil
	times   bool              // the logs have the times of each call
	tally   *tally

	failed atomic.Pointer[error] // why the run ends early: of a log, or of a request that cannot succeed
}

// run drives the nodes until ctx ends, stop was called because the limit is reached, or
// a log cannot be written. Requests under way are waited for. The logs are closed.
func (b *bench) run(ctx context.Context, stop context.CancelFunc, progress func(string)) (time.Duration, error) {
	start := time.Now()
	var slots <-chan time.Time
	var others, clients sync.WaitGroup // clients return when ctx has ended
	if b.rate > 0 {
		due := make(chan time.Time, b.clients)
		slots = due
		others.Go(func() { schedule(ctx, start, b.rate, due) })
	}
	for i := range b.clients {
		clients.Go(func() { b.client(ctx, stop, start, i, slots) })
	}
	ended := make(chan struct{})
	others.Go(func() { b.watch(ended, stop, start, progress) })
	clients.Wait()
	elapsed := time.Since(start)
	close(ended)
	others.Wait()
	err := closeLogs(b.logs)
	if first := b.failed.Load(); first != nil {
		err = *first
	}
	return elapsed, err
}

// client is one client. It has one request at a time, so that what a node answers it
// must be increasing for each tag.
func (b *bench) client(ctx context.Context, stop context.CancelFunc, start time.Time, no int, slots <-chan time.Time) {
	conns := make([]benchConn, len(b.nodes))
	for i, n := range b.nodes {
		conns[i] = n.conn(b.count)
		defer conns[i].close()
	}
	for turn := no; ; turn++ {
		begin, ok := next(ctx, slots)
		if !ok {
			return
		}
		node, what := turn%len(conns), turn/len(conns)%len(b.targets)
		target := b.targets[what]
		var call idlog.Call
		if b.times {
			call.Begin = clock(start)
		}
		ranges, err := conns[node].take(target)
		took := time.Since(begin)
		if err != nil {
			b.tally.fail(node, took, err)
			switch e, ok := errors.AsType[*benchError](err); {
			case !ok:
			case e.final != nil && b.tally.ids.Load() == 0:
				final := fmt.Errorf("%s: %w", b.nodes[node].name(), e.final)
				b.failed.CompareAndSwap(nil, &final)
				stop()
				return
			case e.broken && slots == nil:
				pause(ctx)
			}
			continue
		}
		if b.logs != nil {
			if b.times {
				call.End = clock(start)
			}
			if err := logRanges(b.logs[no][node], target.key, ranges, call); err != nil {
				b.failed.CompareAndSwap(nil, &err)
				stop()
				return
			}
		}
		if total := b.tally.answer(node, what, took, b.count); b.limit > 0 && total >= b.limit {
			stop()
		}
	}
}

// next returns when the next request was due: now, without a schedule.
func next(ctx context.Context, slots <-chan time.Time) (time.Time, bool) {
	if slots == nil {
		return time.Now(), ctx.Err() == nil
	}
	select {
	case <-ctx.Done():
		return time.Time{}, false
	case due := <-slots:
		return due, ctx.Err() == nil
	}
}

// pause keeps a client from asking a dead node in a tight loop.
func pause(ctx context.Context) {
	const wait = 10 * time.Millisecond
	t := time.NewTimer(wait)
	defer t.Stop()
	select {
	case <-ctx.Done():
	case <-t.C:
	}
}

// clock returns nanoseconds since 1970, by a clock that no step of the machine's clock after the
// start moves back.
func clock(start time.Time) int64 { return start.UnixNano() + int64(time.Since(start)) }

func logRanges(w *idlog.Writer, key string, ranges []leaf.Range, call idlog.Call) error {
	for _, r := range ranges {
		if err := w.Append(idlog.Record{Key: key, Lo: r.Lo, Hi: r.Hi - 1, Call: call}); err != nil {
			return err
		}
	}
	return nil
}

// schedule sends the times at which requests are due, each when it has come. When the
// clients are behind it waits, but the times stay those of the schedule.
func schedule(ctx context.Context, start time.Time, rate float64, due chan<- time.Time) {
	for i := 0; ; i++ {
		at := start.Add(time.Duration(float64(i) / rate * float64(time.Second)))
		for {
			wait := time.Until(at)
			if wait <= 0 {
				break
			}
			if ctx.Err() != nil {
				return
			}
			shortSleep(wait)
		}
		select {
		case <-ctx.Done():
			return
		case due <- at:
		}
	}
}

// watch prints a line and flushes the logs each second.
func (b *bench) watch(ended <-chan struct{}, stop context.CancelFunc, start time.Time, progress func(string)) {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	last := b.tally.snapshot()
	for {
		select {
		case <-ended:
			return
		case <-tick.C:
		}
		now := b.tally.snapshot()
		progress(now.line(last, now.at.Sub(start)))
		last = now
		for _, of := range b.logs {
			for _, w := range of {
				if err := w.Flush(); err != nil {
					b.failed.CompareAndSwap(nil, &err)
					stop()
				}
			}
		}
	}
}
