package respd

const errQuotes = protocolError("unbalanced quotes in request")

// splitLine takes a typed line apart as Redis does: words between white space, "…"
// with \n, \r, \t, \b, \a, \xHH and \ before any other character, and '…' with \' only.
// A quoted word ends at its quote, which white space or the line's end must follow.
// The decoded words replace the line's bytes, which they never exceed. The words are
// appended to args.
func splitLine(line []byte, args []span) ([]span, error) {
	in, out := 0, 0
	for {
		for in < len(line) && isSpace(line[in]) {
			in++
		}
		if in == len(line) {
			return args, nil
		}
		if len(args) == maxArgs {
			return nil, protocolError("too many words in a line")
		}
		word := span{from: out}
		quote := byte(0)
	letters:
		for ; ; in++ {
			if in == len(line) {
				if quote != 0 {
					return nil, errQuotes
				}
				break
			}
			c := line[in]
			switch {
			case quote == 0 && isSpace(c):
				break letters
			case quote == 0 && (c == '"' || c == '\''):
				quote = c
				continue
			case quote != 0 && c == quote:
				in++
				if in < len(line) && !isSpace(line[in]) {
					return nil, errQuotes
				}
				break letters
			case quote != 0 && c == '\\' && in+1 < len(line):
				var used int
				c, used = escaped(line[in:], quote)
				in += used - 1
			}
			line[out] = c
			out++
		}
		word.to = out
		args = append(args, word)
	}
}

// escaped decodes the escape sequence that b starts with, and says how long it is.
func escaped(b []byte, quote byte) (c byte, used int) {
	if quote == '\'' {
		if b[1] == '\'' {
			return '\'', 2
		}
		return '\\', 1
	}
	switch b[1] {
	case 'n':
		return '\n', 2
	case 'r':
		return '\r', 2
	case 't':
		return '\t', 2
	case 'b':
		return '\b', 2
	case 'a':
		return '\a', 2
	case 'x':
		if len(b) >= 4 {
			high, ok1 := hexDigit(b[2])
			low, ok2 := hexDigit(b[3])
			if ok1 && ok2 {
				return high<<4 | low, 4
			}
		}
	}
	return b[1], 2
}

func hexDigit(c byte) (value byte, ok bool) {
	switch {
	case '0' <= c && c <= '9':
		return c - '0', true
	case 'a' <= c && c <= 'f':
		return c - 'a' + 10, true
	case 'A' <= c && c <= 'F':
		return c - 'A' + 10, true
	}
	return 0, false
}

func isSpace(c byte) bool { return c == ' ' || '\t' <= c && c <= '\r' }
