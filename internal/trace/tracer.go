package trace

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/leaf-idgen/leaf/internal/jsonpost"
)

const (
	maxQueue = 2048 // spans that wait for the collector; each one more is dropped
	maxBatch = 256
	gather   = time.Second // how long the first span of a batch waits for others
	attempt  = 5 * time.Second
	farewell = time.Second // for what is left when Run is told to end
)

// Config is what a Tracer needs.
type Config struct {
	URL     string // of the collector, with its path, mostly /v1/traces
	Node    string // the name of this process among its like
	Version string // of the program
	Logger  *slog.Logger

	Client *http.Client // default: one of its own that follows no redirect
}

// Tracer sends spans. Make it with New and let it Run; nil makes no spans. All methods are safe for
// concurrent use.
type Tracer struct {
	cfg     Config
	queue   chan *Span
	sent    atomic.Int64
	dropped atomic.Int64
}

// New returns a Tracer that sends nothing before Run.
func New(c Config) *Tracer {
	c.Client = cmp.Or(c.Client, jsonpost.NewClient())
	return &Tracer{cfg: c, queue: make(chan *Span, maxQueue)}
}

// Stats is what became of the spans.
type Stats struct {
	Sent    int64 // the collector has them
	Dropped int64 // it does not answer, refuses them, or too many waited
}

// Stats returns the counts since New.
func (t *Tracer) Stats() Stats { return Stats{t.sent.Load(), t.dropped.Load()} }

func (t *Tracer) push(s *Span) {
	select {
	case t.queue <- s:
	default:
		t.dropped.Add(1)
	}
}

// Run sends spans until ctx ends, and then, within a second, those that are left. The log says once
// when the collector begins to fail, and once when it takes spans again.
func (t *Tracer) Run(ctx context.Context) {
	sending, cut := context.WithCancel(context.WithoutCancel(ctx))
	defer cut()
	defer context.AfterFunc(ctx, func() { time.AfterFunc(farewell, cut) })()
	failed := false
	for {
		batch := t.next(ctx)
		if len(batch) == 0 {
			return
		}
		err := t.send(sending, batch)
		if err == nil {
			t.sent.Add(int64(len(batch)))
			if failed {
				t.cfg.Logger.Info("the collector takes spans again", "dropped", t.dropped.Load())
			}
		} else {
			t.dropped.Add(int64(len(batch)))
			if !failed {
				t.cfg.Logger.Warn("the collector of trace.url does not take spans, and they are dropped", "error", err)
			}
		}
		failed = err != nil
	}
}

// next returns the spans of one request: what is there a moment after the first. Once ctx has ended
// it does not wait; without a span left it returns nothing.
func (t *Tracer) next(ctx context.Context) (batch []*Span) {
	select {
	case s := <-t.queue:
		batch = append(batch, s)
	case <-ctx.Done():
		select {
		case s := <-t.queue:
			batch = append(batch, s)
		default:
			return nil
		}
	}
	full := time.NewTimer(gather)
	defer full.Stop()
	done := ctx.Done()
	if ctx.Err() != nil {
		full.Reset(0)
	}
	for len(batch) < maxBatch {
		select {
		case s := <-t.queue:
			batch = append(batch, s)
			continue
		default:
		}
		select {
		case s := <-t.queue:
			batch = append(batch, s)
		case <-full.C:
			return batch
		case <-done:
			done = nil
			full.Reset(0)
		}
	}
	return batch
}

func (t *Tracer) send(ctx context.Context, batch []*Span) error {
	ctx, cancel := context.WithTimeout(ctx, attempt)
	defer cancel()
	status, err := jsonpost.Send(ctx, t.cfg.Client, t.cfg.URL, t.request(batch))
	if err == nil && status/100 != 2 {
		return fmt.Errorf("the collector answers with HTTP status %d", status)
	}
	return err
}
