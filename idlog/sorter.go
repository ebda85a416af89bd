package idlog

import (
	"context"
	"errors"
)

// sorter sorts full buffers and writes them to the temporary file, in a goroutine of
// its own, while the next buffer is filled. It starts with the first full buffer.
type sorter struct {
	temp  string
	cap   int  // of a buffer
	apart bool // entries are never joined

	file *runFile // nil until the first buffer is full
	work chan []entry
	back chan sorted
	runs []run
	busy bool // a buffer is on its way
}

type sorted struct {
	buf []entry
	run run
	err error
}

// exchange takes a full buffer and returns an empty one.
func (s *sorter) exchange(full []entry) ([]entry, error) {
	empty := []entry(nil)
	switch {
	case s.file == nil:
		file, err := createRunFile(s.temp)
		if err != nil {
			return nil, err
		}
		file.apart = s.apart
		s.file, s.work, s.back = file, make(chan []entry), make(chan sorted, 1)
		go s.loop()
	case s.busy:
		done := <-s.back
		s.busy = false
		if done.err != nil {
			return nil, done.err
		}
		s.runs = append(s.runs, done.run)
		empty = done.buf[:0]
	}
	s.work <- full
	s.busy = true
	if empty == nil {
		empty = make([]entry, 0, s.cap)
	}
	return empty, nil
}

func (s *sorter) loop() {
	buf := make([]byte, 0, minRunBuffer)
	for all := range s.work {
		sortEntries(all)
		w := s.file.begin(buf)
		var err error
		for _, e := range all {
			if err = w.add(e); err != nil {
				break
			}
		}
		r, endErr := w.end()
		s.back <- sorted{all, r, errors.Join(err, endErr)}
	}
	close(s.back)
}

// finish sorts the last buffer and hands all entries in order to yield. Without a
// temporary file it needs none.
func (s *sorter) finish(ctx context.Context, last []entry, memory int64, yield func(entry) error) error {
	if s.file == nil {
		sortEntries(last)
		for _, e := range last {
			if err := yield(e); err != nil {
				return err
			}
		}
		return nil
	}
	if _, err := s.exchange(last); err != nil {
		return err
	}
	if err := s.stop(); err != nil {
		return err
	}
	buf := make([]byte, memory)
	runs, err := s.file.reduce(ctx, s.runs, buf)
	if err != nil {
		return err
	}
	return s.file.merge(runs, buf, yield)
}

// stop ends the goroutine and waits for it. It may be called twice.
func (s *sorter) stop() error {
	if s.work == nil {
		return nil
	}
	close(s.work)
	s.work = nil
	var err error
	for done := range s.back {
		s.runs = append(s.runs, done.run)
		err = errors.Join(err, done.err)
	}
	return err
}

// spilled returns the size of the temporary file.
func (s *sorter) spilled() int64 {
	if s.file == nil {
		return 0
	}
	return s.file.size
}

// close removes the temporary file.
func (s *sorter) close() error {
	err := s.stop()
	if s.file != nil {
		err = errors.Join(err, s.file.close())
	}
	return err
}
