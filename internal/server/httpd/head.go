package httpd

import (
	"bytes"

	"github.com/leaf-idgen/leaf"
)

// Mode is which of the two ID routes a request names.
type Mode uint8

// The modes.
const (
	Segment Mode = iota
	Snowflake
)

// String returns the mode as it stands in the path.
func (m Mode) String() string {
	if m == Segment {
		return "segment"
	}
	return "snowflake"
}

// verdict is what parseHead thinks of the bytes at a request boundary.
type verdict uint8

const (
	partial    verdict = iota // understood so far, more bytes are needed
	understood                // a complete head, all of it understood
	foreign                   // net/http's business
)

// head is a request that the fast path can answer.
type head struct {
	mode  Mode
	key   []byte // within the bytes given to parseHead, like the next four
	token []byte // of the field Authorization: Bearer
	name  []byte // of the field Leaf-Client
	id    []byte // of the field X-Request-Id
	trace []byte // of the field traceparent
	size  int    // length of the head with its final CRLF CRLF
}

const (
	segmentLine   = "GET /api/segment/get/"
	snowflakeLine = "GET /api/snowflake/get/"
	lineEnd       = " HTTP/1.1\r\n"
)

// parseHead looks at b, which starts where a request starts. It is a pure
// function of b, and stays foreign once it is: more bytes never turn foreign into
// understood.
//
// Understood is only a request whose meaning no byte can change behind our back:
// GET of an ID route with a key of unreserved characters and without query;
// HTTP/1.1; lines that end in CRLF; exactly one plain Host; and apart from that
// only fields of a list, none of which the net/http path looks at, with printable
// ASCII values. Accept and Connection are on it with the values that mean "as
// always", the two fields of credentials once each, if there is no space in them. A
// body is announced by fields that are not on it.
func parseHead(b []byte) (head, verdict) {
	var (
		h head
		i int
	)
	switch {
	case len(b) >= len(segmentLine) && string(b[:len(segmentLine)]) == segmentLine:
		h.mode, i = Segment, len(segmentLine)
	case len(b) >= len(snowflakeLine) && string(b[:len(snowflakeLine)]) == snowflakeLine:
		h.mode, i = Snowflake, len(snowflakeLine)
	default:
		return h, startOf(b, segmentLine, snowflakeLine)
	}

	start := i
	for i < len(b) && charClass[b[i]]&keyChar != 0 {
		i++
	}
	h.key = b[start:i]
	if len(h.key) > leaf.MaxTagLen {
		return h, foreign
	}
	if len(b)-i < len(lineEnd) {
		return h, startOf(b[i:], lineEnd)
	}
	if len(h.key) == 0 || string(b[i:i+len(lineEnd)]) != lineEnd {
		return h, foreign
	}
	i += len(lineEnd)

	for hosts := 0; ; {
		if rest := b[i:]; len(rest) > 0 && rest[0] == '\r' {
			switch {
			case hosts != 1:
				return h, foreign
			case len(rest) == 1:
				return h, partial
			case rest[1] != '\n':
				return h, foreign
			}
			h.size = i + 2
			return h, understood
		}
		n, kind, value, v := parseField(b[i:])
		if v != understood {
			return h, v
		}
		i += n
		switch kind {
		case hostField:
			hosts++
		case tokenField:
			if h.token != nil {
				return h, foreign
			}
			h.token = value
		case nameField:
			if h.name != nil {
				return h, foreign
			}
			h.name = value
		case requestField:
			if h.id != nil {
				return h, foreign
			}
			h.id = value
		case traceField:
			if h.trace != nil {
				return h, foreign
			}
			h.trace = value
		}
	}
}

// fieldKind is what a header field is to parseHead.
type fieldKind uint8

const (
	plainField fieldKind = iota // of no consequence
	hostField
	tokenField
	nameField
	requestField
	traceField
)

// parseField looks at one header field at the start of b and returns its length with
// CRLF, and what is to be known of a field that is not plain.
func parseField(b []byte) (n int, kind fieldKind, value []byte, v verdict) {
	var lower [maxFieldName]byte
	i := 0
	for ; ; i++ {
		if i == len(b) {
			return 0, plainField, nil, partial
		}
		if b[i] == ':' {
			break
		}
		c := lowerName[b[i]]
		if c == 0 || i == len(lower) {
			return 0, plainField, nil, foreign
		}
		lower[i] = c
	}
	name := lower[:i]

	i++
	for i < len(b) && b[i] == ' ' {
		i++
	}
	start := i
	for i < len(b) && charClass[b[i]]&valueChar != 0 {
		i++
	}
	value = b[start:i]
	if len(b)-i < len("\r\n") {
		return 0, plainField, nil, startOf(b[i:], "\r\n")
	}
	if b[i] != '\r' || b[i+1] != '\n' {
		return 0, plainField, nil, foreign
	}
	i += len("\r\n")

	// The fast path looks at the same fields as net/http and our handlers: net/http reads no
	// others, and our handlers read Accept and the credentials.
	switch string(name) {
	case "host":
		return i, hostField, nil, verdictOf(isPlainHost(value))
	case "authorization":
		if len(value) < len(bearer) || string(value[:len(bearer)]) != bearer {
			return 0, plainField, nil, foreign
		}
		value = value[len(bearer):]
		return i, tokenField, value, verdictOf(isWord(value))
	case "leaf-client":
		return i, nameField, value, verdictOf(isWord(value) && len(value) <= maxClientName)
	case "accept":
		return i, plainField, nil, verdictOf(string(value) == "*/*" || string(value) == textPlain)
	case "connection":
		return i, plainField, nil, verdictOf(string(value) == "keep-alive" || string(value) == "Keep-Alive")
	case "x-request-id":
		return i, requestField, bytes.TrimRight(value, " "), understood
	case "traceparent":
		return i, traceField, bytes.TrimRight(value, " "), understood
	case "user-agent", "accept-encoding", "accept-language", "cache-control", "pragma", "referer",
		"x-forwarded-for", "x-forwarded-proto", "x-forwarded-host", "x-forwarded-port", "x-real-ip",
		"forwarded", "via", "tracestate", "baggage":
		return i, plainField, nil, understood
	}
	return i, plainField, nil, foreign
}

// maxFieldName is the length of the longest name in parseField.
const maxFieldName = len("x-forwarded-proto")

// startOf returns partial if b is a proper start of one of the texts.
func startOf(b []byte, texts ...string) verdict {
	for _, t := range texts {
		if len(b) < len(t) && string(b) == t[:len(b)] {
			return partial
		}
	}
	return foreign
}

func verdictOf(ok bool) verdict {
	if ok {
		return understood
	}
	return foreign
}

func isPlainHost(value []byte) bool {
	for _, c := range value {
		if charClass[c]&hostChar == 0 {
			return false
		}
	}
	return len(value) > 0
}

// isWord reports whether value is one word.
func isWord(value []byte) bool { return len(value) > 0 && bytes.IndexByte(value, ' ') < 0 }

// Bits of charClass.
const (
	keyChar   = 1 << iota // RFC 3986 unreserved
	hostChar              // names, addresses, and the colon of a port
	valueChar             // printable ASCII with the space
)

var (
	charClass = makeCharClass()
	lowerName = makeLowerName()
)

func makeCharClass() (class [256]uint8) {
	for c := 0x20; c < 0x7f; c++ {
		class[c] = valueChar
		switch {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', c == '-', c == '.', c == '_':
			class[c] |= keyChar | hostChar
		case c == '~':
			class[c] |= keyChar
		case c == ':', c == '[', c == ']':
			class[c] |= hostChar
		}
	}
	return class
}

// makeLowerName maps the characters of field names to lower case and all other
// bytes to 0. (Setting bit 0x20 would turn CR into a hyphen.)
func makeLowerName() (lower [256]byte) {
	for c := 'a'; c <= 'z'; c++ {
		lower[c] = byte(c)
		lower[c-'a'+'A'] = byte(c)
	}
	lower['-'] = '-'
	return lower
}
