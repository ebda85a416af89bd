package number_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/leaf-idgen/leaf/number"
)

// idOf is the ID of a number in the period that begins on a day.
func idOf(t *testing.T, day string, n int64) int64 {
	t.Helper()
	at, err := time.Parse(time.DateOnly, day)
	if err != nil {
		t.Fatal(err)
	}
	return at.Unix()/86400<<number.PeriodBits | n
}

// TestDates: the date is that of the ID's high bits, and comes back with it.
func TestDates(t *testing.T) {
	for _, c := range []struct {
		template string
		id       int64
		want     string // "": it does not fit
	}{
		{"INV-{yyyyMMdd}-{seq:04}", idOf(t, "2026-11-27", 42), "INV-20261127-0042"},
		{"{yyyy-MM-dd}/{seq:02:36}{check:mod97}", idOf(t, "2028-02-29", 35), "2028-02-29/0Z59"},
		{"{yyyyMM}{seq:03}", idOf(t, "2026-11-01", 7), "202611007"},
		{"A{yyyy-MM}.{seq:03}", idOf(t, "1970-01-01", 0), "A1970-01.000"},
		{"{yyyy}{seq:01}", idOf(t, "9999-01-01", 9), "99999"},
		{"{yyyy}{seq:01}", idOf(t, "2026-01-01", 10), ""},
		{"{yyyy}{seq:01}", idOf(t, "9999-01-01", 9) + 366<<number.PeriodBits, ""}, // the year 10000
		{"{yyyy}{seq:01}", idOf(t, "2026-01-02", 1), ""},                          // would have the text of 2026-01-01
		{"{yyyyMM}{seq:03}", idOf(t, "2026-11-02", 7), ""},
		{"{yyyyMMdd}{seq:03}", -1, ""},
	} {
		made, err := number.ParseTemplate(c.template)
		if err != nil {
			t.Fatal(err)
		}
		text, err := made.Format(c.id)
		if c.want == "" {
			if !errors.Is(err, number.ErrOverflow) || made.Fits(c.id) {
				t.Errorf("%s of %d: %q, %v; want that it does not fit", c.template, c.id, text, err)
			}
			continue
		}
		if !strings.HasPrefix(text, c.want) && text != c.want || err != nil || len(text) != made.Len() {
			t.Errorf("%s: %q, %v; want %q", c.template, text, err, c.want)
		}
		if id, err := made.Parse(text); err != nil || id != c.id {
			t.Errorf("%s of %q: %d, %v; want %d", c.template, text, id, err, c.id)
		}
	}
}

// TestDatesThatAreNone: no other text is taken for that of an ID.
func TestDatesThatAreNone(t *testing.T) {
	made, err := number.ParseTemplate("INV-{yyyyMMdd}-{seq:013}")
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{"INV-20260230-0000000000001", "INV-19691231-0000000000001", "INV-2026113-0000000000001", "INV-202611270000000000001", "INV-", "INV-20261127-9999999999999", "INV-+0261127-0000000000001"} {
		if id, err := made.Parse(text); !errors.Is(err, number.ErrText) || !strings.Contains(err.Error(), "as in INV-20260101-0000000000042") {
			t.Errorf("%q: %d, %v; want ErrText with an example", text, id, err)
		}
	}
}
