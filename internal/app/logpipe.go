package app

import (
	"bytes"
	"context"
	"io"
	"time"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/internal/bounded"
	"github.com/leaf-idgen/leaf/internal/config"
)

const (
	// maxLogLines bounds the lines that wait for the program that reads the log.
	maxLogLines = 4096

	// lastLogLines is how long a stop waits for the last lines to be written.
	lastLogLines = time.Second
)

// LogPipe is where a node writes its log. A program that does not read the log fills its pipe, and a
// terminal can be stopped: a write then blocks, and the node must not wait for it. Lines beyond
// maxLogLines are dropped; a line says how many are missing, once the log is read again.
type LogPipe struct{ queue bounded.Queue[[]byte] }

// NewLogPipe returns the pipe to w.
func NewLogPipe(w io.Writer, c config.Log) *LogPipe {
	return &LogPipe{bounded.Queue[[]byte]{Runtime: leaf.SystemRuntime(), Max: maxLogLines, Write: func(line []byte, dropped int) {
		if dropped > 0 {
			var missing bytes.Buffer
			log, _ := NewLogger(&missing, c)
			log.Warn("the log was not read in time: lines are missing near here", "missing", dropped)
			_, _ = w.Write(missing.Bytes())
		}
		_, _ = w.Write(line) // without a reader there is no log
	}}}
}

// Write implements io.Writer. It does not block.
func (p *LogPipe) Write(line []byte) (int, error) {
	p.queue.Add(bytes.Clone(line))
	return len(line), nil
}

// Close waits until the last lines are written, but not for long.
func (p *LogPipe) Close() {
	ctx, cancel := context.WithTimeout(context.Background(), lastLogLines)
	defer cancel()
	_ = p.queue.Flush(ctx) // what is left is lost
}
