package idlog

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
)

// maxLine is the longest line in bytes, its end included.
const maxLine = 64 << 10

const idLimit = "must be a decimal number from -9223372036854775808 to 9223372036854775807"

var byteOrderMark = []byte("\xef\xbb\xbf")

// textReader reads lines.
type textReader struct {
	in   *bufio.Reader // holds maxLine bytes
	keys interner
	at   Place // of the line that was read last
	next int64 // offset of the line after it
	torn *Torn

	quoted [3][]byte // fields that were quoted
}

func (r *textReader) read() (Record, error) {
	for {
		line, err := r.in.ReadSlice('\n')
		r.at.Line++
		r.at.Offset = r.next
		r.next += int64(len(line))
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
			return Record{}, &SyntaxError{r.at, "line", shorten(line), fmt.Sprintf("is longer than %d bytes", maxLine)}
		case err != nil && !errors.Is(err, io.EOF):
			return Record{}, fmt.Errorf("read %v: %w", r.at, err)
		}
		line = bytes.TrimPrefix(line, byteOrderMark) // of any line: a file with one may stand behind another file
		fields := trimFront(line)
		for n := len(fields); n > 0 && (isSeparator(fields[n-1]) || fields[n-1] == '\n' || fields[n-1] == '\r'); n-- {
			fields = fields[:n-1]
		}
		empty := len(fields) == 0 || fields[0] == '#'
		switch {
		case err != nil && empty:
			return Record{}, io.EOF
		case err != nil:
			r.torn = &Torn{r.at, r.next - r.at.Offset, fmt.Sprintf("the last line, %s, has no end", shorten(fields))}
			return Record{}, io.EOF
		case !empty:
			return r.record(fields)
		}
	}
}

func isSeparator(c byte) bool { return c == ' ' || c == '\t' || c == ',' }

func trimFront(line []byte) []byte {
	for len(line) > 0 && isSeparator(line[0]) {
		line = line[1:]
	}
	return line
}

// record reads a line without what surrounds its fields: KEY ID @BEGIN-END, where the first
// and the last may be missing.
func (r *textReader) record(line []byte) (Record, error) {
	var fields [3][]byte
	n := 0
	for rest := line; len(rest) > 0; n++ {
		if n == len(fields) {
			return Record{}, r.tooMany(line)
		}
		var err error
		if fields[n], rest, err = r.field(rest, &r.quoted[n]); err != nil {
			return Record{}, err
		}
	}
	var call Call
	if last := fields[n-1]; n > 1 && len(last) > 0 && last[0] == callMark {
		var err error
		if call, err = r.call(last); err != nil {
			return Record{}, err
		}
		n--
	}
	switch n {
	case 1:
		return r.ids("", fields[0], call)
	case 2:
		if len(fields[0]) > MaxKey {
			return Record{}, &SyntaxError{r.at, "key", shorten(fields[0]), fmt.Sprintf("has %d bytes, limit %d", len(fields[0]), MaxKey)}
		}
		return r.ids(r.keys.of(fields[0]), fields[1], call)
	}
	return Record{}, r.tooMany(line)
}

func (r *textReader) tooMany(line []byte) error {
	return &SyntaxError{r.at, "line", shorten(line), "has more than 2 fields, KEY and ID (and @BEGIN-END, the times of the call)"}
}

// field cuts the first field off a line that is not empty. A quoted one is put into
// buf.
func (r *textReader) field(line []byte, buf *[]byte) (field, rest []byte, err error) {
	if line[0] != '"' {
		end := 0
		for end < len(line) && !isSeparator(line[end]) {
			end++
		}
		return line[:end], trimFront(line[end:]), nil
	}
	quoted, err := strconv.QuotedPrefix(string(line))
	if err == nil && (len(quoted) == len(line) || isSeparator(line[len(quoted)])) {
		var text string
		if text, err = strconv.Unquote(quoted); err == nil {
			*buf = append((*buf)[:0], text...)
			return *buf, trimFront(line[len(quoted):]), nil
		}
	}
	return nil, nil, &SyntaxError{r.at, "field", shorten(line), "is not quoted correctly"}
}

// ids reads "ID" or "LO-HI".
func (r *textReader) ids(key string, field []byte, call Call) (Record, error) {
	lo, n := parseID(field)
	if n == len(field) && n > 0 {
		return Record{key, lo, lo, call}, nil
	}
	if n == 0 || field[n] != '-' {
		return Record{}, &SyntaxError{r.at, "ID", shorten(field), idLimit + ", or a range LO-HI of two"}
	}
	hi, m := parseID(field[n+1:])
	switch {
	case m == 0 || n+1+m != len(field):
		return Record{}, &SyntaxError{r.at, "ID", shorten(field), idLimit + ", or a range LO-HI of two"}
	case hi < lo:
		return Record{}, &SyntaxError{r.at, "range", shorten(field), "ends before it begins"}
	}
	return Record{key, lo, hi, call}, nil
}

// parseID reads the number that text begins with. It returns its length, 0 if there is
// none or if it is not an int64.
func parseID(text []byte) (id int64, n int) {
	limit := uint64(math.MaxInt64)
	negative := len(text) > 0 && text[0] == '-'
	if negative {
		limit++
		n = 1
	}
	digits := n
	var v uint64
	for ; n < len(text) && '0' <= text[n] && text[n] <= '9'; n++ {
		d := uint64(text[n] - '0')
		if v > (limit-d)/10 {
			return 0, 0
		}
		v = v*10 + d
	}
	switch {
	case n == digits:
		return 0, 0
	case negative:
		return int64(-v), n
	}
	return int64(v), n
}

// appendLine appends the line of r without its end.
func appendLine(dst []byte, r Record) []byte {
	switch {
	case r.Key == "":
	case plain(r.Key):
		dst = append(append(dst, r.Key...), ' ')
	default:
		dst = append(strconv.AppendQuote(dst, r.Key), ' ')
	}
	dst = strconv.AppendInt(dst, r.Lo, 10)
	if r.Hi != r.Lo {
		dst = strconv.AppendInt(append(dst, '-'), r.Hi, 10)
	}
	if r.Call != (Call{}) {
		dst = r.Call.append(append(dst, ' '))
	}
	return dst
}

// plain reports whether key can stand in a line without quotes.
func plain(key string) bool {
	for i := range len(key) {
		if c := key[i]; c <= ' ' || c > '~' || c == ',' || c == '"' {
			return false
		}
	}
	return key[0] != '#'
}

// interner keeps one string per key, so that reading a record allocates nothing. It
// forgets all keys when there are too many of them.
type interner struct {
	last string
	all  map[string]string
}

func (k *interner) of(key []byte) string {
	if string(key) == k.last {
		return k.last
	}
	s, ok := k.all[string(key)]
	if !ok {
		const limit = 1 << 12
		if k.all == nil || len(k.all) >= limit {
			k.all = map[string]string{}
		}
		s = string(key)
		k.all[s] = s
	}
	k.last = s
	return s
}
