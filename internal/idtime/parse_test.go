package idtime_test

import (
	"errors"
	"net/url"
	"testing"
	"time"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/internal/idtime"
)

// echo is a layout that answers with what it was asked.
type echo struct {
	js53 bool

	idtime.None
}

func (e echo) Decode(id int64) (idtime.Decoded, error) {
	if e.js53 {
		id = -id
	}
	return idtime.Decoded{ID: id}, nil
}

func (echo) Of(text string) (idtime.Layout, error) {
	if text != "js53" {
		return nil, leaf.BadField("layout", text, "must be js53")
	}
	return echo{true, idtime.None{}}, nil
}

func (echo) Range(from, to time.Time) (idtime.Range, error) {
	if to.IsZero() {
		return idtime.Range{Lo: from.UnixMilli(), Hi: -1}, nil
	}
	return idtime.Range{Lo: from.UnixMilli(), Hi: to.UnixMilli()}, nil
}

func TestAskRange(t *testing.T) {
	for _, tt := range []struct {
		query  string
		lo, hi int64 // 0: refused
	}{
		{"from=1700000000000", 1700000000000, -1},
		{"from=2023-11-14T22:13:20Z&to=2023-11-14T22:13:20.001%2B00:00", 1700000000000, 1700000000001},
		{"from=2023-11-15T00:13:20%2B02:00", 1700000000000, -1},
		{"from=1&to=9223372036854775807", 1, 9223372036854775807},
		{"from=5&layout=js53", 5, -1},
		{"from=5&layout=lief", 0, 0},
		{"", 0, 0},
		{"to=5", 0, 0},
		{"from=1&from=2", 0, 0},
		{"from=1&to=", 0, 0},
		{"from=1&to=2&to=3", 0, 0},
		{"from=-1", 0, 0},
		{"from=1.5", 0, 0},
		{"from=9223372036854775808", 0, 0},
		{"from=2023-11-14", 0, 0},
		{"from=2023-11-14T22:13:20", 0, 0},
		{"from=1&to=0001-01-01T00:00:00Z", 0, 0}, // the zero time would ask for one unit
		{"from=1&to=0001-01-01T01:00:00%2B01:00", 0, 0},
	} {
		query, err := url.ParseQuery(tt.query)
		if err != nil {
			t.Fatal(err)
		}
		r, err := idtime.AskRange(echo{}, query)
		if tt.lo == 0 && !errors.Is(err, leaf.ErrBadRequest) || tt.lo != 0 && (err != nil || r.Lo != tt.lo || r.Hi != tt.hi) {
			t.Errorf("%s: %+v, %v", tt.query, r, err)
		}
	}
}

func TestAskDecode(t *testing.T) {
	for query, want := range map[string]int64{"id=7": 7, "id=7&layout=js53": -7, "id=7&layout=lief": -1, "id=7&layout=js53&layout=js53": -1, "id=7&layout=": -1, "id=9223372036854775807": 9223372036854775807, "id=9223372036854775808": -1, "id=-1": -1, "id=+7": -1, "id=": -1, "": -1, "id=1&id=1": -1} {
		values, err := url.ParseQuery(query)
		if err != nil {
			t.Fatal(err)
		}
		d, err := idtime.AskDecode(echo{}, values)
		if want == -1 && !errors.Is(err, leaf.ErrBadRequest) || want != -1 && (err != nil || d.ID != want) {
			t.Errorf("%s: %+v, %v", query, d, err)
		}
	}
	if _, err := idtime.AskDecode(idtime.None{}, url.Values{"id": {"1"}}); !errors.Is(err, leaf.ErrDisabled) {
		t.Errorf("without a layout: %v", err)
	}
}
