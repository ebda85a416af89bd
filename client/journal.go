package client

import (
	"context"
	"fmt"
	"log/slog"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/internal/bounded"
)

// maxEntries bounds the reports that wait for the log handler.
const maxEntries = 256

// journal writes the client's reports to the log. A log handler is the application's: it
// may block, or ask the client. So nothing of the client waits for it. When it is too slow,
// new reports are dropped and counted in the log.
type journal struct{ queue bounded.Queue[entry] }

type entry struct {
	level slog.Level
	text  string
	args  []any
}

func newJournal(rt leaf.Runtime, log *slog.Logger) *journal {
	return &journal{bounded.Queue[entry]{Runtime: rt, Max: maxEntries, Write: func(e entry, dropped int) {
		log.Log(context.Background(), e.level, e.text, e.args...)
		if dropped > 0 {
			log.Warn("the log handler is too slow, or panics: reports of the Leaf client are missing here", "missing", dropped)
		}
	}}}
}

// add queues a report. It does not block, and may be called with any lock held.
func (j *journal) add(level slog.Level, text string, args ...any) {
	j.queue.Add(entry{level, text, args})
}

// flush returns when all reports are written, or with an error when ctx ends.
func (j *journal) flush(ctx context.Context) error {
	if err := j.queue.Flush(ctx); err != nil {
		return fmt.Errorf("the log handler has not returned: %w", err)
	}
	return nil
}
