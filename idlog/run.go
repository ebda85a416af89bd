package idlog

import (
	"errors"
	"fmt"
	"io"
	"os"
)

// run is a sorted sequence of entries in the temporary file.
type run struct{ offset, size int64 }

// runFile is the temporary file. All runs are in it, one after the other, so that
// their number needs no file descriptors. It has no name where the system allows that,
// so that nothing stays behind a process that is killed.
type runFile struct {
	f    *os.File
	size int64
	left bool // the file still has its name

	apart bool // entries are never joined
}

func createRunFile(folder string) (*runFile, error) {
	f, err := os.CreateTemp(folder, "idlog-")
	if err != nil {
		return nil, fmt.Errorf("idlog: temporary file: %w", err)
	}
	return &runFile{f: f, left: os.Remove(f.Name()) != nil}, nil
}

func (rf *runFile) close() error {
	err := rf.f.Close()
	if rf.left {
		err = errors.Join(err, os.Remove(rf.f.Name()))
	}
	return err
}

// runWriter appends one run. Entries must come sorted.
type runWriter struct {
	file  *runFile
	from  int64
	buf   []byte
	delta delta
	last  entry // not yet encoded, since it may grow
	has   bool
}

// begin starts a run that is written through buf.
func (rf *runFile) begin(buf []byte) *runWriter {
	return &runWriter{file: rf, from: rf.size, buf: buf[:0]}
}

func (w *runWriter) add(e entry) error {
	switch {
	case !w.has:
		w.last, w.has = e, true
		return nil
	case !w.file.apart && e.follows(w.last):
		w.last.hi = e.hi
		return nil
	}
	w.buf = w.delta.append(w.buf, w.last)
	w.last = e
	if len(w.buf)+maxEntry > cap(w.buf) {
		return w.write()
	}
	return nil
}

func (w *runWriter) write() error {
	n, err := w.file.f.WriteAt(w.buf, w.file.size)
	w.file.size += int64(n)
	w.buf = w.buf[:0]
	if err != nil {
		return fmt.Errorf("idlog: temporary file, after %d bytes: %w", w.file.size, err)
	}
	return nil
}

func (w *runWriter) end() (run, error) {
	if w.has {
		w.buf = w.delta.append(w.buf, w.last)
	}
	err := w.write()
	return run{w.from, w.file.size - w.from}, err
}

// runReader reads one run.
type runReader struct {
	in    *io.SectionReader
	buf   []byte // at least maxEntry
	rest  []byte // of buf, not yet decoded
	ended bool   // all bytes are in buf
	delta delta
	head  entry // the current entry
}

// open returns a reader of r that reads through buf.
func (rf *runFile) open(r run, buf []byte) *runReader {
	return &runReader{in: io.NewSectionReader(rf.f, r.offset, r.size), buf: buf}
}

// advance moves head to the next entry. It returns false at the end.
func (r *runReader) advance() (bool, error) {
	if len(r.rest) < maxEntry && !r.ended {
		kept := copy(r.buf, r.rest)
		n, err := io.ReadFull(r.in, r.buf[kept:])
		r.rest = r.buf[:kept+n]
		switch {
		case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
			r.ended = true
		case err != nil:
			return false, fmt.Errorf("idlog: temporary file: %w", err)
		}
	}
	if len(r.rest) == 0 {
		return false, nil
	}
	e, n := r.delta.next(r.rest)
	if n == 0 {
		return false, errors.New("idlog: temporary file: a run ends within an entry")
	}
	r.head, r.rest = e, r.rest[n:]
	return true, nil
}
