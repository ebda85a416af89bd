package cli

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"

	"github.com/leaf-idgen/leaf"
)

// statusError is the error of a reply that is not 200: it names the status and the code of
// the problem. A problem that Leaf knows and calls permanent is final.
func statusError(what benchTarget, status int, body []byte) *benchError {
	var problem struct {
		Code string `json:"code"`
	}
	const longest = 40
	if json.Unmarshal(body, &problem) != nil || problem.Code == "" || len(problem.Code) > longest {
		return &benchError{kind: strconv.Itoa(status)}
	}
	e := &benchError{kind: fmt.Sprintf("%d %s", status, printable(problem.Code))}
	if class, known := leaf.ClassByCode(problem.Code); known && class.Err != nil && !class.Retryable {
		e.final = fmt.Errorf("%w: asked for an ID %v", class.Err, what)
		switch {
		case errors.Is(class.Err, leaf.ErrUnauthenticated):
			e.final = fmt.Errorf("%w; name the file of a token with --auth-token-file", e.final)
		case errors.Is(class.Err, leaf.ErrUnknownTag) && what.sequence != "":
			e.final = fmt.Errorf("%w, which leaf sequence create makes", e.final)
		}
	}
	return e
}

// parseIDs reads a reply with exactly count IDs: bare digits for one, JSON for more.
// Anything else is an error: what is no ID must not get into a log.
func parseIDs(dst []leaf.Range, body []byte, count int) ([]leaf.Range, error) {
	if count == 1 {
		id, rest, ok := cutID(bytes.TrimSuffix(body, []byte("\n")))
		if !ok || len(rest) > 0 {
			return nil, &benchError{kind: kindMalformed}
		}
		return append(dst, leaf.Range{Lo: id, Hi: id + 1}), nil
	}
	rest, ok := bytes.CutPrefix(body, []byte(`{"ids":[`))
	for n := 0; ok; n++ {
		var id int64
		if rest, ok = bytes.CutPrefix(rest, []byte(`"`)); !ok {
			break
		}
		if id, rest, ok = cutID(rest); !ok {
			break
		}
		dst = leaf.AppendRange(dst, leaf.Range{Lo: id, Hi: id + 1})
		if n+1 == count {
			if rest, ok = bytes.CutPrefix(rest, []byte(`"]}`)); ok && len(bytes.TrimRight(rest, "\r\n ")) == 0 {
				return dst, nil
			}
			break
		}
		rest, ok = bytes.CutPrefix(rest, []byte(`",`))
	}
	return nil, &benchError{kind: kindMalformed}
}

// cutID takes the digits at the front of text, which must be an ID: 0 to 2^63 - 2.
func cutID(text []byte) (id int64, rest []byte, ok bool) {
	const limit = 1<<63 - 2
	n := 0
	var v uint64
	for ; n < len(text) && '0' <= text[n] && text[n] <= '9'; n++ {
		if n == 19 {
			return 0, nil, false
		}
		v = v*10 + uint64(text[n]-'0')
	}
	return int64(v), text[n:], n > 0 && v <= limit
}
