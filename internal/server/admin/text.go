package admin

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/leaf-idgen/leaf"
)

// decode reads exactly one JSON value without unknown fields. Package json would put U+FFFD
// in the place of what is no Unicode, and so make the name of a tag that of another one:
// decode refuses such a text.
func decode(body io.Reader, v any) error {
	text, err := io.ReadAll(body)
	if err != nil {
		return fmt.Errorf("%w: body: %w", leaf.ErrBadRequest, err)
	}
	if !isUnicode(text) {
		return fmt.Errorf("%w: body: must be valid UTF-8 without half of a surrogate pair", leaf.ErrBadRequest)
	}
	dec := json.NewDecoder(bytes.NewReader(text))
	dec.DisallowUnknownFields()
	if err := dec.Decode(v); err != nil {
		return fmt.Errorf("%w: body: %w", leaf.ErrBadRequest, err)
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return fmt.Errorf("%w: body: must hold one JSON value", leaf.ErrBadRequest)
	}
	return nil
}

// isUnicode reports whether a JSON text is UTF-8, and has no escape of half a surrogate
// pair without the other half.
func isUnicode(text []byte) bool {
	if !utf8.Valid(text) {
		return false
	}
	for {
		i := bytes.IndexByte(text, '\\')
		if i < 0 {
			return true
		}
		text = text[i:]
		switch first := escaped(text); {
		case !utf16.IsSurrogate(first):
			text = text[min(2, len(text)):]
		case utf16.DecodeRune(first, escaped(text[6:])) == utf8.RuneError:
			return false
		default:
			text = text[12:]
		}
	}
}

// escaped returns what an escape like \u00e9 at the beginning of text stands for, 0 if there
// is no such escape.
func escaped(text []byte) rune {
	if len(text) < 6 || text[0] != '\\' || text[1] != 'u' {
		return 0
	}
	r, err := strconv.ParseUint(string(text[2:6]), 16, 16)
	if err != nil {
		return 0
	}
	return rune(r)
}
