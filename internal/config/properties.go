package config

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// property is one entry of a .properties file.
type property struct {
	key, value string
	line       int // of the key, from 1
}

// parseProperties reads the format of java.util.Properties: comments with # and !,
// the separators =, : and blank, continuation lines, the escapes \t \n \r \f
// \uXXXX. Entries come in order; a key may repeat. file is for errors only.
func parseProperties(file, text string) ([]property, error) {
	var out []property
	lines := splitLines(text)
	for i := 0; i < len(lines); i++ {
		start := i
		logical := strings.TrimLeft(lines[i], propertyBlank)
		if logical == "" || logical[0] == '#' || logical[0] == '!' {
			continue
		}
		for continues(logical) {
			logical = logical[:len(logical)-1]
			if i++; i == len(lines) {
				break
			}
			logical += strings.TrimLeft(lines[i], propertyBlank)
		}
		rawKey, rawValue := cutProperty(logical)
		key, err := unescapeProperty(rawKey)
		if err != nil {
			return nil, &Error{Source: fmt.Sprintf("%s:%d", file, start+1), Limit: err.Error()}
		}
		value, err := unescapeProperty(rawValue)
		if err != nil {
			return nil, &Error{Key: key, Source: fmt.Sprintf("%s:%d", file, start+1), Limit: err.Error()}
		}
		out = append(out, property{key, value, start + 1})
	}
	return out, nil
}

const propertyBlank = " \t\f"

// propertyText is UTF-8 if it is valid UTF-8, else what Java reads.
func propertyText(data []byte) string {
	if utf8.Valid(data) {
		return strings.TrimPrefix(string(data), "\uFEFF")
	}
	return latin1(data)
}

// latin1 is what Java reads: in ISO-8859-1 a byte is its code point.
func latin1(data []byte) string {
	runes := make([]rune, len(data))
	for i, b := range data {
		runes[i] = rune(b)
	}
	return string(runes)
}

// splitLines splits at \n, \r and \r\n.
func splitLines(text string) []string {
	return strings.Split(strings.ReplaceAll(strings.ReplaceAll(text, "\r\n", "\n"), "\r", "\n"), "\n")
}

// continues reports whether a line ends in an odd number of backslashes.
func continues(line string) bool {
	return (len(line)-len(strings.TrimRight(line, `\`)))%2 == 1
}

// cutProperty splits at the first separator that no backslash precedes: one of =
// and :, with blanks around it, or blanks alone.
func cutProperty(line string) (key, value string) {
	end := len(line)
scan:
	for i := 0; i < len(line); i++ {
		switch line[i] {
		case '\\':
			i++
		case '=', ':', ' ', '\t', '\f':
			end = i
			break scan
		}
	}
	value = strings.TrimLeft(line[end:], propertyBlank)
	if value != "" && (value[0] == '=' || value[0] == ':') {
		value = strings.TrimLeft(value[1:], propertyBlank)
	}
	return line[:end], value
}

func unescapeProperty(text string) (string, error) {
	if !strings.Contains(text, `\`) {
		return text, nil
	}
	var b strings.Builder
	for i := 0; i < len(text); i++ {
		if text[i] != '\\' {
			b.WriteByte(text[i])
			continue
		}
		if i++; i == len(text) {
			break // only at the end of the file; Java drops it as well
		}
		switch text[i] {
		case 't':
			b.WriteByte('\t')
		case 'n':
			b.WriteByte('\n')
		case 'r':
			b.WriteByte('\r')
		case 'f':
			b.WriteByte('\f')
		case 'u':
			r, size, err := unicodeEscape(text[i+1:])
			if err != nil {
				return "", err
			}
			b.WriteRune(r)
			i += size
		default:
			b.WriteByte(text[i])
		}
	}
	return b.String(), nil
}

// unicodeEscape decodes the four digits after \u, and the second half of a
// surrogate pair if there is one.
func unicodeEscape(text string) (r rune, size int, err error) {
	unit, err := hex4(text)
	if err != nil {
		return 0, 0, err
	}
	if !utf16.IsSurrogate(unit) {
		return unit, 4, nil
	}
	if rest, found := strings.CutPrefix(text[4:], `\u`); found {
		if low, err := hex4(rest); err == nil {
			if r := utf16.DecodeRune(unit, low); r != utf8.RuneError {
				return r, 10, nil
			}
		}
	}
	return 0, 0, fmt.Errorf(`\u%s is half a character: its second half must follow`, text[:4])
}

func hex4(text string) (rune, error) {
	if len(text) >= 4 {
		if n, err := strconv.ParseUint(text[:4], 16, 16); err == nil {
			return rune(n), nil
		}
	}
	return 0, fmt.Errorf(`\u must be followed by four hexadecimal digits`)
}
