package respd

import (
	"strconv"
	"unicode/utf8"

	"github.com/leaf-idgen/leaf/internal/server/format"
)

// reply gathers replies in the protocol that the client chose.
type reply struct {
	buf   []byte
	resp3 bool
}

func (r *reply) head(kind byte, n int64) {
	r.buf = append(r.buf, kind)
	r.buf = strconv.AppendInt(r.buf, n, 10)
	r.buf = append(r.buf, '\r', '\n')
}

func (r *reply) integer(n int64) { r.head(':', n) }

func (r *reply) array(n int) { r.head('*', int64(n)) }

// mapping opens a map of n pairs; in RESP2 it is the flat array of both.
func (r *reply) mapping(n int) {
	if r.resp3 {
		r.head('%', int64(n))
		return
	}
	r.array(2 * n)
}

// set opens a set; in RESP2 it is an array.
func (r *reply) set(n int) {
	if r.resp3 {
		r.head('~', int64(n))
		return
	}
	r.array(n)
}

func (r *reply) null() {
	if r.resp3 {
		r.buf = append(r.buf, "_\r\n"...)
		return
	}
	r.buf = append(r.buf, "$-1\r\n"...)
}

// simple appends a status, which must be one line.
func (r *reply) simple(s string) {
	r.buf = append(r.buf, '+')
	r.buf = append(r.buf, s...)
	r.buf = append(r.buf, '\r', '\n')
}

func (r *reply) ok() { r.simple("OK") }

func (r *reply) bulk(s string) {
	r.head('$', int64(len(s)))
	r.buf = append(r.buf, s...)
	r.buf = append(r.buf, '\r', '\n')
}

// id appends the text of an ID as a bulk string.
func (r *reply) id(f *format.Format, id int64) {
	var room [20]byte
	text := f.Append(room[:0], id)
	r.head('$', int64(len(text)))
	r.buf = append(r.buf, text...)
	r.buf = append(r.buf, '\r', '\n')
}

// text appends what people read: a verbatim string, in RESP2 a bulk string.
func (r *reply) text(s string) {
	if !r.resp3 {
		r.bulk(s)
		return
	}
	r.head('=', int64(len(s)+len("txt:")))
	r.buf = append(r.buf, "txt:"...)
	r.buf = append(r.buf, s...)
	r.buf = append(r.buf, '\r', '\n')
}

// failure appends an error. Its text may quote what the client sent, so whatever is
// not printable UTF-8 becomes a question mark.
func (r *reply) failure(s string) {
	r.buf = append(r.buf, '-')
	for _, c := range s {
		if c < ' ' || 0x7f <= c && c < 0xa0 || c == utf8.RuneError || c == '\u2028' || c == '\u2029' {
			c = '?'
		}
		r.buf = utf8.AppendRune(r.buf, c)
	}
	r.buf = append(r.buf, '\r', '\n')
}
