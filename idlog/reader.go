package idlog

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"strconv"
)

// Format is how a log is written.
type Format string

// The formats.
const (
	Text   Format = "text"
	Binary Format = "binary"
)

// Reader reads one log. It is not safe for concurrent use.
type Reader struct {
	format Format
	text   textReader
	blocks blockReader
	err    error // that every further call returns
}

// NewReader returns a reader of the log in, whose format it recognises. The name is
// for errors and places. It reads in large pieces; in needs no buffer of its own.
func NewReader(in io.Reader, name string) *Reader {
	br := bufio.NewReaderSize(in, maxLine)
	r := &Reader{format: Text}
	r.text.in, r.text.at.File = br, name
	r.blocks.in, r.blocks.at.File = br, name
	head, err := br.Peek(headerSize)
	if err != nil && !errors.Is(err, io.EOF) {
		r.err = fmt.Errorf("read %s: %w", name, err)
		return r
	}
	if len(head) == 0 || !bytes.HasPrefix(head, []byte(magic)[:min(len(head), len(magic))]) {
		r.err = refuseCompressed(br, r.text.at)
		return r
	}
	r.format = Binary
	switch {
	case len(head) < headerSize:
		r.err = r.blocks.tear(int64(len(head)), "the header is incomplete")
	case head[len(magic)] != version:
		r.err = r.blocks.broken("version", strconv.Itoa(int(head[len(magic)])), fmt.Sprintf("this program reads version %d", version))
	}
	_, _ = br.Discard(len(head))
	r.blocks.next = int64(len(head))
	return r
}

// Next returns the next record, or [io.EOF] after the last one. A log that cannot be
// read further gives a [*SyntaxError] or the error of the underlying reader, from
// then on at every call. It allocates nothing for a key that it has seen lately.
func (r *Reader) Next() (Record, error) {
	if r.err != nil {
		return Record{}, r.err
	}
	var rec Record
	if r.format == Text {
		rec, r.err = r.text.read()
	} else {
		rec, r.err = r.blocks.read()
	}
	return rec, r.err
}

// Place returns where the record stands that Next returned last.
func (r *Reader) Place() Place {
	if r.format == Text {
		return r.text.at
	}
	return r.blocks.at
}

// Torn returns what Next left out at the end of the log because it is a piece of a
// record, nil if the log ends whole. It is known once Next has returned io.EOF.
func (r *Reader) Torn() *Torn {
	if r.format == Text {
		return r.text.torn
	}
	return r.blocks.torn
}

// Format returns the format of the log.
func (r *Reader) Format() Format { return r.format }
