package alarm

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/internal/bounded"
)

// lines writes log lines in their order: the caller may hold locks, and a log can block. Lines
// beyond maxWaiting are left out and counted.
type lines struct {
	queue bounded.Queue[line]

	mu      sync.Mutex
	closed  bool
	windows map[string]*window
}

type line struct {
	level slog.Level
	text  string
	args  []any
}

// window counts the lines of one code within a minute.
type window struct {
	begin   time.Time
	lines   int
	skipped int
}

const (
	perMinute  = 100    // lines of one code
	maxWaiting = 10_000 // lines that a log which blocks may hold up
)

func newLines(rt leaf.Runtime, log *slog.Logger) *lines {
	return &lines{windows: map[string]*window{}, queue: bounded.Queue[line]{Runtime: rt, Max: maxWaiting, Write: func(n line, dropped int) {
		log.Log(context.Background(), n.level, n.text, n.args...)
		if dropped > 0 {
			log.Warn("lines of alarms were left out", "lines", dropped)
		}
	}}}
}

// alarm writes the line of a change.
func (l *lines) alarm(now time.Time, a leaf.Alarm, what change) {
	l.mu.Lock()
	defer l.mu.Unlock()
	w := l.windows[a.Code]
	if w == nil {
		w = &window{begin: now}
		l.windows[a.Code] = w
	}
	if now.Sub(w.begin) >= time.Minute || now.Before(w.begin) {
		if w.skipped > 0 {
			l.push(line{slog.LevelWarn, "lines of alarms were left out", []any{"code", a.Code, "lines", w.skipped}})
		}
		*w = window{begin: now}
	}
	switch w.lines++; {
	case w.lines == perMinute+1:
		l.push(line{slog.LevelWarn, "too many alarms of one kind; further lines are left out for up to a minute", []any{"code", a.Code}})
		fallthrough
	case w.lines > perMinute:
		w.skipped++
		return
	}
	if what == cleared {
		l.push(line{slog.LevelInfo, "alarm ended: " + a.Text, []any{"code", a.Code, "subject", a.Subject}})
		return
	}
	args := []any{"code", a.Code, "subject", a.Subject}
	if a.Do != "" {
		args = append(args, "do", a.Do)
	}
	l.push(line{slog.LevelError, a.Text, args})
}

// warn writes a line of the board's own.
func (l *lines) warn(text string, args ...any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.push(line{slog.LevelWarn, text, args})
}

// push queues a line. l.mu is held.
func (l *lines) push(n line) {
	if !l.closed {
		l.queue.Add(n)
	}
}

// close takes no more lines and waits for those given.
func (l *lines) close(ctx context.Context) error {
	l.mu.Lock()
	l.closed = true
	l.mu.Unlock()
	if err := l.queue.Flush(ctx); err != nil {
		return fmt.Errorf("write the lines of alarms: %w", err)
	}
	return nil
}
