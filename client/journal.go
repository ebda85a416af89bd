package client

import (
	"context"
	"fmt"
	"log/slog"
	"sync"

	"github.com/leaf-idgen/leaf"
)

// maxEntries bounds the reports that wait for the log handler.
const maxEntries = 256

// journal writes the client's reports to the log. A log handler is the application's: it
// may block, or ask the client. So a goroutine of its own calls it, which nothing else
// of the client waits for. The goroutine ends when there is nothing to write.
type journal struct {
	rt  leaf.Runtime
	log *slog.Logger

	mu      sync.Mutex
	entries []entry
	dropped int
	empty   chan struct{} // closed when the goroutine ends; nil: none runs
}

type entry struct {
	level slog.Level
	text  string
	args  []any
}

// add queues a report. It does not block, and may be called with any lock held. When the
// handler is too slow, new reports are dropped and counted in the log.
func (j *journal) add(level slog.Level, text string, args ...any) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if len(j.entries) >= maxEntries {
		j.dropped++
		return
	}
	j.entries = append(j.entries, entry{level, text, args})
	if j.empty == nil {
		empty := make(chan struct{})
		j.empty = empty
		j.rt.Go(func() {
			defer close(empty)
			j.write()
		})
	}
}

// write calls the handler for one entry after the other.
func (j *journal) write() {
	for {
		j.mu.Lock()
		if len(j.entries) == 0 {
			j.empty = nil
			j.mu.Unlock()
			return
		}
		e, dropped := j.entries[0], j.dropped
		j.entries, j.dropped = j.entries[1:], 0
		j.mu.Unlock()
		if !j.report(e, dropped) {
			j.mu.Lock()
			j.dropped += dropped + 1
			j.mu.Unlock()
		}
	}
}

// report calls the handler, and returns false if it panics.
func (j *journal) report(e entry, dropped int) (ok bool) {
	defer func() { ok = recover() == nil }()
	j.log.Log(context.Background(), e.level, e.text, e.args...)
	if dropped > 0 {
		j.log.Warn("the log handler is too slow, or panics: reports of the Leaf client are missing here", "missing", dropped)
	}
	return true
}

// flush returns when all reports are written, or with an error when ctx ends.
func (j *journal) flush(ctx context.Context) error {
	j.mu.Lock()
	empty := j.empty
	j.mu.Unlock()
	if empty == nil {
		return nil
	}
	if err := j.rt.Wait(ctx, empty, 0); err != nil {
		return fmt.Errorf("the log handler has not returned: %w", err)
	}
	return nil
}
