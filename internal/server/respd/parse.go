package respd

import (
	"bytes"
	"fmt"
)

const (
	// maxArgs bounds the arguments of a request, its name included.
	maxArgs = 1024

	// maxDigits bounds a length on the wire: 9 digits fit into an int everywhere.
	maxDigits = 9
)

// protocolError says why bytes cannot be a request, in the words of Redis. Where
// the next request begins is unknown then, so the connection ends.
type protocolError string

func (e protocolError) Error() string { return "Protocol error: " + string(e) }

// span is the place of an argument, relative to the first byte of its request.
type span struct{ from, to int }

// parser finds the end and the arguments of one request at a time. It goes on where it
// stopped when more bytes have come, so bytes that trickle in are looked at once.
type parser struct {
	limit int    // bytes that a request may have
	args  []span // complete when next returns a size

	started bool // the first line of an array was understood
	left    int  // arguments that are still to come
	bulk    int  // length of the argument that comes next, -1 if its line is still to come
	pos     int  // bytes that are understood, or for a typed line, that hold no newline
}

// reset prepares for the next request.
func (p *parser) reset() {
	p.args, p.started, p.left, p.bulk, p.pos = p.args[:0], false, 0, -1, 0
}

// next looks at b, which starts with the first byte of a request. It returns the size
// of the request, or 0 if b holds only a part of it. A request without arguments, such
// as an empty line, is one to be skipped. Between two calls with size 0, b may only
// grow; it is changed when a typed line is taken apart. Error: protocolError.
func (p *parser) next(b []byte) (size int, err error) {
	if !p.started {
		if len(b) == 0 {
			return 0, nil
		}
		if b[0] != '*' {
			return p.line(b)
		}
		n, end := number(b, 1)
		if end < 0 || n > maxArgs {
			return 0, protocolError(fmt.Sprintf("invalid multibulk length, must be at most %d", maxArgs))
		}
		if end == 0 {
			return 0, nil
		}
		p.started, p.left, p.pos = true, n, end
	}
	for ; p.left > 0; p.left-- {
		if p.bulk < 0 {
			if p.pos == len(b) {
				return 0, nil
			}
			if b[p.pos] != '$' {
				return 0, protocolError(fmt.Sprintf("expected '$', got '%c'", printable(b[p.pos])))
			}
			n, end := number(b, p.pos+1)
			if end < 0 || n < 0 || end+n+2 > p.limit {
				return 0, protocolError(fmt.Sprintf("invalid bulk length, a request has at most %d bytes", p.limit))
			}
			if end == 0 {
				return 0, nil
			}
			p.bulk, p.pos = n, end
		}
		end := p.pos + p.bulk
		if len(b) < end+2 {
			return 0, nil
		}
		if b[end] != '\r' || b[end+1] != '\n' {
			return 0, protocolError("no CRLF after the bytes of a bulk string")
		}
		p.args = append(p.args, span{p.pos, end})
		p.bulk, p.pos = -1, end+2
	}
	return p.pos, nil
}

// line takes apart a request that was typed.
func (p *parser) line(b []byte) (size int, err error) {
	end := bytes.IndexByte(b[p.pos:], '\n')
	if end < 0 {
		p.pos = len(b)
		return 0, nil
	}
	end += p.pos
	if p.args, err = splitLine(b[:end], p.args[:0]); err != nil {
		return 0, err
	}
	return end + 1, nil
}

// number reads digits and CRLF from b[at:]. end is the index behind them, 0 if b ends
// before, and -1 if they are not there. A minus sign makes n -1, whatever follows it.
func number(b []byte, at int) (n, end int) {
	first := at
	negative := false
	if at < len(b) && b[at] == '-' {
		negative = true
		first++
	}
	for i := first; i < len(b); i++ {
		c := b[i]
		switch {
		case '0' <= c && c <= '9' && i-first < maxDigits:
			n = 10*n + int(c-'0')
		case c == '\r' && i > first:
			switch {
			case i+1 == len(b):
				return 0, 0
			case b[i+1] != '\n':
				return 0, -1
			case negative:
				return -1, i + 2
			}
			return n, i + 2
		default:
			return 0, -1
		}
	}
	return 0, 0
}

// printable returns c, or '?' for what would break a line or a terminal.
func printable(c byte) byte {
	if c < ' ' || c > '~' {
		return '?'
	}
	return c
}
