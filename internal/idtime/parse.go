package idtime

import (
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/leaf-idgen/leaf"
)

// AskDecode answers a query with the parameter id and, for another layout than l, layout. Error: leaf.ErrBadRequest.
func AskDecode(l Layout, query url.Values) (Decoded, error) {
	text, err := once(query, "id")
	if err != nil {
		return Decoded{}, err
	}
	id, err := ParseID("id", text)
	if err != nil {
		return Decoded{}, err
	}
	if l, err = asked(l, query); err != nil {
		return Decoded{}, err
	}
	return l.Decode(id)
}

// AskRange answers a query with the parameters from and, unless it asks for one unit of time,
// to, and for another layout than l, layout. Error: leaf.ErrBadRequest.
func AskRange(l Layout, query url.Values) (Range, error) {
	var times [2]time.Time
	for i, field := range []string{"from", "to"} {
		if i == 1 && !query.Has(field) {
			break
		}
		text, err := once(query, field)
		if err != nil {
			return Range{}, err
		}
		if times[i], err = ParseTime(field, text); err != nil {
			return Range{}, err
		}
	}
	l, err := asked(l, query)
	if err != nil {
		return Range{}, err
	}
	return l.Range(times[0], times[1])
}

// asked returns the layout that the query names; without that parameter it is l.
func asked(l Layout, query url.Values) (Layout, error) {
	const field = "layout"
	if !query.Has(field) {
		return l, nil
	}
	text, err := once(query, field)
	if err != nil {
		return nil, err
	}
	return l.Of(text)
}

func once(query url.Values, field string) (string, error) {
	if values := query[field]; len(values) != 1 {
		return "", leaf.BadField(field, strings.Join(values, ","), "must be given once")
	}
	return query.Get(field), nil
}

// ParseID reads the ID in a field of a request. Error: leaf.ErrBadRequest.
func ParseID(field, text string) (int64, error) {
	id, err := strconv.ParseUint(text, 10, 63)
	if err != nil {
		return 0, leaf.BadField(field, text, "must be a decimal number from 0 to 2^63-1")
	}
	return int64(id), nil
}

// ParseTime reads the time in a field of a request: RFC 3339, or digits, which are milliseconds
// since 1970. It is never the zero time. Error: leaf.ErrBadRequest.
func ParseTime(field, text string) (time.Time, error) {
	if ms, err := strconv.ParseUint(text, 10, 63); err == nil {
		return time.UnixMilli(int64(ms)).UTC(), nil
	}
	at, err := time.Parse(time.RFC3339Nano, text)
	if err != nil || at.IsZero() {
		return at, leaf.BadField(field, text, "must be a time such as 2026-01-31T12:00:00Z, or milliseconds since 1970")
	}
	return at.UTC(), nil
}
