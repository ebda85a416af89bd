package alarm

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/leaf-idgen/leaf"
)

// lines writes log lines in their order, from a goroutine that lives while there are lines to
// write: the caller may hold locks, and a log can block. Its length is bounded by the limit of lines a minute.
type lines struct {
	rt  leaf.Runtime
	log *slog.Logger

	mu      sync.Mutex
	waiting []line
	writing bool
	closed  bool
	idle    chan struct{} // made by close, closed when writing ends
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
	return &lines{rt: rt, log: log, windows: map[string]*window{}}
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

// push gives a line to the goroutine. l.mu is held.
func (l *lines) push(n line) {
	if l.closed || len(l.waiting) >= maxWaiting {
		return
	}
	l.waiting = append(l.waiting, n)
	if !l.writing {
		l.writing = true
		l.rt.Go(l.write)
	}
}

func (l *lines) write() {
	for {
		l.mu.Lock()
		batch := l.waiting
		l.waiting = nil
		if len(batch) == 0 {
			l.writing = false
			if l.idle != nil {
				close(l.idle)
				l.idle = nil
			}
			l.mu.Unlock()
			return
		}
		l.mu.Unlock()
		for _, n := range batch {
			l.log.Log(context.Background(), n.level, n.text, n.args...)
		}
	}
}

// close takes no more lines and waits for those given.
func (l *lines) close(ctx context.Context) error {
	l.mu.Lock()
	l.closed = true
	if !l.writing {
		l.mu.Unlock()
		return nil
	}
	if l.idle == nil {
		l.idle = make(chan struct{})
	}
	idle := l.idle
	l.mu.Unlock()
	if err := l.rt.Wait(ctx, idle, 0); err != nil {
		return fmt.Errorf("write the lines of alarms: %w", err)
	}
	return nil
}
