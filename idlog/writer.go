package idlog

import (
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"sync"
)

// errClosed is what a closed Writer answers.
var errClosed = errors.New("idlog: the log is closed")

// Writer writes one log. Its methods may be called by many goroutines; the log then
// has their records in the order of the calls, and a meaningful order of IDs only if
// the calls had one.
//
// Consecutive IDs of one key become one record, if they have the same times. Records are buffered up to 32 KiB:
// what was not flushed when the process dies is missing in the log.
type Writer struct {
	out    io.Writer
	format Format

	// turn is held by the call that writes to out, so that mu is not held meanwhile.
	turn chan struct{}

	mu      sync.Mutex
	pending Record // not yet encoded, since it may grow
	has     bool   // whether there is a pending record
	text    []byte
	block   blockEncoder
	queue   [][]byte // full buffers, in the order of their records
	spare   []byte   // a written buffer, to be used again
	closed  bool     // no record is taken any more
	err     error    // the first one, from then on
}

// NewWriter returns a writer that has begun a log in out. It does not close out,
// unless out is an [io.Closer]: then Close does.
func NewWriter(out io.Writer, format Format) *Writer {
	w := &Writer{out: out, format: format, turn: make(chan struct{}, 1)}
	switch format {
	case Text:
	case Binary:
		w.queue = append(w.queue, append([]byte(magic), version))
	default:
		w.err = fmt.Errorf("idlog: format %q: must be %q or %q", format, Text, Binary)
	}
	return w
}

// Create returns a writer of a new file. A file that exists is an error: after a torn
// tail nothing could be appended that a reader would find.
func Create(path string, format Format) (*Writer, error) {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return nil, err
	}
	return NewWriter(f, format), nil
}

// ID logs one ID. See [Writer.Append].
func (w *Writer) ID(key string, id int64) error { return w.Append(Record{Key: key, Lo: id, Hi: id}) }

// Append logs r. An error of the underlying writer, also of an earlier call, is
// returned by every call from then on; an r that is no record changes nothing.
func (w *Writer) Append(r Record) error {
	if err := r.check(); err != nil {
		return err
	}
	if r.Call != (Call{}) && w.format == Binary {
		return fmt.Errorf("idlog: times %v: the format %q has none, use %q", r.Call, Binary, Text)
	}
	w.mu.Lock()
	switch {
	case w.err != nil:
		err := w.err
		w.mu.Unlock()
		return err
	case w.closed:
		w.mu.Unlock()
		return errClosed
	case w.has && w.pending.Key == r.Key && w.pending.Call == r.Call && w.pending.Hi != math.MaxInt64 && w.pending.Hi+1 == r.Lo:
		w.pending.Hi = r.Hi
		w.mu.Unlock()
		return nil
	}
	w.encodeLocked()
	w.pending, w.has = r, true
	full := len(w.text) >= blockTarget || len(w.block.buf) >= blockTarget
	if full {
		w.sealLocked()
	}
	w.mu.Unlock()
	if full {
		return w.drain()
	}
	return nil
}

// Flush writes what was logged before the call. A log that is flushed after each
// record cannot join consecutive ones.
func (w *Writer) Flush() error {
	w.mu.Lock()
	w.encodeLocked()
	w.sealLocked()
	w.mu.Unlock()
	return w.drain()
}

// Close flushes and closes. It returns the first error of the log's life. A second
// Close, and any use after it or beside it, is an error: no record is taken that would
// not be written.
func (w *Writer) Close() error {
	w.mu.Lock()
	if w.closed {
		w.mu.Unlock()
		return errClosed
	}
	w.closed = true
	w.encodeLocked()
	w.sealLocked()
	w.mu.Unlock()
	err := w.drain()
	w.mu.Lock()
	w.err = errClosed
	w.mu.Unlock()
	if c, ok := w.out.(io.Closer); ok {
		err = errors.Join(err, c.Close())
	}
	return err
}

// encodeLocked moves the pending record into the buffer.
func (w *Writer) encodeLocked() {
	switch {
	case !w.has || w.err != nil:
	case w.format == Text:
		w.text = append(appendLine(w.text, w.pending), '\n')
	default:
		w.block.add(w.pending)
	}
	w.has = false
}

// sealLocked moves the buffer to the queue.
func (w *Writer) sealLocked() {
	switch {
	case len(w.text) > 0:
		w.queue = append(w.queue, w.text)
		w.text = w.spare[:0]
	case len(w.block.buf) > 0:
		w.queue = append(w.queue, w.block.take(w.spare))
	default:
		return
	}
	w.spare = nil
}

// drain writes the queue. A call that had to wait for its turn mostly finds the queue empty.
// It waits all the same: so the queue never has more entries than there are callers.
func (w *Writer) drain() error {
	w.turn <- struct{}{}
	defer func() { <-w.turn }()
	for {
		w.mu.Lock()
		if w.err != nil || len(w.queue) == 0 {
			err := w.err
			w.mu.Unlock()
			return err
		}
		buf := w.queue[0]
		w.queue = w.queue[1:]
		w.mu.Unlock()

		_, err := w.out.Write(buf)

		w.mu.Lock()
		w.spare = buf
		if err != nil && w.err == nil {
			w.err = fmt.Errorf("write ID log: %w", err)
		}
		w.mu.Unlock()
	}
}
