package number

import (
	"slices"
	"strings"
	"time"
)

// PeriodBits is how many low bits of an ID count within its period, if its tag numbers begin anew in each period.
// The bits above are the day on which the period begins, in days since 1970-01-01. JavaScript and other programs with
// 64-bit floats read such IDs exactly until the year 2149, when they reach 2^53.
const PeriodBits = 37

// The periods of dates.
const (
	Day   = "day"
	Month = "month"
	Year  = "year"
)

// date is a field that shows the period of an ID.
type date struct {
	field  string // between { and }
	layout string // of package time
	period string
}

var dates = []date{
	{"yyyyMMdd", "20060102", Day},
	{"yyyy-MM-dd", "2006-01-02", Day},
	{"yyyyMM", "200601", Month},
	{"yyyy-MM", "2006-01", Month},
	{"yyyy", "2006", Year},
}

// exampleDay is 2026-01-01, on which a day, a month and a year begin.
const exampleDay = 20454

// append appends the date of a period that begins on day.
func (d *date) append(dst []byte, day int64) []byte {
	return time.Unix(day*86400, 0).UTC().AppendFormat(dst, d.layout)
}

// day returns the day on which the period of a date begins, and whether the text is a date since 1970.
func (d *date) day(text string) (int64, bool) {
	at, err := time.Parse(d.layout, text)
	return at.Unix() / 86400, err == nil && len(text) == len(d.layout) && at.Unix() >= 0
}

// shows reports whether the date of day is that of no other day: with a field for months, it is the first of one.
func (d *date) shows(day int64) bool {
	again, ok := d.day(string(d.append(nil, day)))
	return ok && again == day
}

// date takes a field that shows the period.
func (p *parser) date(field string) error {
	t := p.t
	i := slices.IndexFunc(dates, func(d date) bool { return d.field == field })
	switch {
	case i < 0:
		return p.wrong("{%s}: the dates are {yyyyMMdd}, {yyyy-MM-dd}, {yyyyMM}, {yyyy-MM} and {yyyy}", field)
	case t.width != 0:
		return p.wrong("{%s} must stand in front of {seq}, so that texts sort as their numbers do", field)
	case t.date != nil:
		return p.wrong("must have a date at most once")
	}
	t.date = &dates[i]
	return nil
}

// isDate reports whether a field means a date.
func isDate(field string) bool { return field != "" && strings.Trim(field, "yMdHms-/.") == "" }

// Period returns the period that the date of the template shows, Day, Month or Year, or "" if it has no date.
func (t *Template) Period() string {
	if t.date == nil {
		return ""
	}
	return t.date.period
}

// Sequence returns what {seq} shows of an ID: all of it, or with a date its low PeriodBits bits.
func (t *Template) Sequence(id int64) int64 {
	if t.date == nil {
		return id
	}
	return id & (1<<PeriodBits - 1)
}

// Fits reports whether an ID has a text.
func (t *Template) Fits(id int64) bool {
	return id >= 0 && t.Sequence(id) <= t.largest && (t.date == nil || t.date.shows(id>>PeriodBits))
}
