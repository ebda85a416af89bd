package httpd

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"unicode/utf8"

	"github.com/leaf-idgen/leaf"
)

// The bounds of a request for several tags. The body has room for as many entries as
// are allowed with the longest tags, unless they are written with escapes.
const (
	maxAsks     = 100
	maxAsksBody = 64 << 10
)

// readAsks reads the body of POST /v1/next, whatever its Content-Type says. Every error
// is leaf.ErrBadRequest and names the entry.
func readAsks(w http.ResponseWriter, r *http.Request) ([]ask, error) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxAsksBody))
	if err != nil {
		if _, ok := errors.AsType[*http.MaxBytesError](err); ok {
			return nil, leaf.BadField("body", "too long", fmt.Sprintf("must have at most %d bytes", maxAsksBody))
		}
		return nil, leaf.BadField("body", "incomplete", "must arrive in the time for a request")
	}
	return parseAsks(body)
}

func parseAsks(body []byte) ([]ask, error) {
	if !utf8.Valid(body) { // encoding/json would replace what is not, and change a tag
		return nil, leaf.BadField("body", string(body), "must be valid UTF-8")
	}
	var whole json.RawMessage
	if err := json.Unmarshal(body, &whole); err != nil {
		return nil, leaf.BadField("body", string(body), "must be JSON: "+err.Error())
	}
	var list []json.RawMessage
	err := members(whole, "body", func(name string, value json.RawMessage) error {
		if name != "requests" {
			return unknownMember(name, "requests")
		}
		if value[0] != '[' || json.Unmarshal(value, &list) != nil {
			return leaf.BadField(name, string(value), "must be an array")
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	if len(list) < 1 || len(list) > maxAsks {
		return nil, leaf.BadField("requests", fmt.Sprintf("%d entries", len(list)), fmt.Sprintf("must have 1 to %d", maxAsks))
	}
	asks := make([]ask, len(list))
	total := 0
	for i, data := range list {
		if asks[i], err = parseAsk(data, fmt.Sprintf("requests[%d]", i)); err != nil {
			return nil, err
		}
		total += asks[i].count
	}
	if total > leaf.MaxBatch {
		return nil, leaf.BadField("requests", fmt.Sprintf("%d IDs", total), fmt.Sprintf("must ask for at most %d in all", leaf.MaxBatch))
	}
	return asks, nil
}

// parseAsk reads the entry that stands at path.
func parseAsk(data json.RawMessage, path string) (ask, error) {
	q := ask{count: 1}
	err := members(data, path, func(name string, value json.RawMessage) error {
		field := path + "." + name
		switch name {
		case "tag":
			text, err := stringOf(field, value)
			q.tag = text
			return err
		case "mode":
			text, err := stringOf(field, value)
			q.modeText = text
			switch {
			case err != nil:
				return err
			case text == Segment.String():
				q.mode = Segment
			case text == Snowflake.String():
				q.mode = Snowflake
			default:
				return leaf.BadField(field, text, "must be segment or snowflake")
			}
			return nil
		case "count":
			n, err := strconv.ParseUint(string(value), 10, 32)
			if err != nil || n < 1 || n > leaf.MaxBatch {
				return leaf.BadField(field, string(value), fmt.Sprintf("must be a number from 1 to %d, in digits", leaf.MaxBatch))
			}
			q.count = int(n)
			return nil
		case "format":
			text, err := stringOf(field, value)
			if err == nil && text == "" {
				err = leaf.BadField(field, text, "must be one word")
			}
			q.formatText = text
			return err
		}
		return unknownMember(field, "tag, mode, count and format")
	})
	if err != nil {
		return q, err
	}
	if q.mode == Snowflake && q.tag == "" {
		return q, nil // it is a name for the log only
	}
	if err := leaf.ValidateTag(q.tag); err != nil {
		return q, fmt.Errorf("%s: %w", path, err)
	}
	return q, nil
}

// members calls visit for each member of the object data, which is valid JSON. Names are
// compared exactly, unlike in encoding/json, and none may occur twice.
func members(data json.RawMessage, path string, visit func(name string, value json.RawMessage) error) error {
	if len(data) == 0 || data[0] != '{' {
		return leaf.BadField(path, string(data), "must be an object")
	}
	dec := json.NewDecoder(bytes.NewReader(data))
	if _, err := dec.Token(); err != nil {
		return err
	}
	seen := map[string]bool{}
	for dec.More() {
		token, err := dec.Token()
		if err != nil {
			return err
		}
		name, _ := token.(string)
		if seen[name] {
			return leaf.BadField(path, name, "must be given once")
		}
		seen[name] = true
		var value json.RawMessage
		if err := dec.Decode(&value); err != nil {
			return err
		}
		if err := visit(name, value); err != nil {
			return err
		}
	}
	return nil
}

func unknownMember(name, known string) error {
	return leaf.BadField("member", name, "is not known, the known ones are "+known)
}

// stringOf returns the string that value, which is valid JSON, stands for.
func stringOf(field string, value json.RawMessage) (string, error) {
	var text string
	if value[0] != '"' || json.Unmarshal(value, &text) != nil {
		return "", leaf.BadField(field, string(value), "must be a string")
	}
	if halfSurrogate(value) {
		return "", leaf.BadField(field, string(value), "has half of a surrogate pair, which is no character")
	}
	return text, nil
}

// halfSurrogate reports whether a valid JSON string has an escape \uD800 to \uDFFF that
// is not one of a pair. encoding/json reads such a one as U+FFFD, and so would give IDs
// of another tag.
func halfSurrogate(text []byte) bool {
	for i := 0; i+1 < len(text); i++ {
		if text[i] != '\\' {
			continue
		}
		i++ // the escaped character
		if text[i] != 'u' {
			continue
		}
		switch unit := hexUnit(text[i+1:]); {
		case unit >= 0xdc00 && unit <= 0xdfff:
			return true
		case unit >= 0xd800 && unit <= 0xdbff:
			rest := text[i+5:]
			if len(rest) < 6 || rest[0] != '\\' || rest[1] != 'u' {
				return true
			}
			if low := hexUnit(rest[2:]); low < 0xdc00 || low > 0xdfff {
				return true
			}
			i += 6
		}
	}
	return false
}

func hexUnit(digits []byte) uint64 {
	unit, _ := strconv.ParseUint(string(digits[:4]), 16, 16) // the JSON is valid
	return unit
}
