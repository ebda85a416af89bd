package number

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Limits of a template.
const (
	// MaxTemplate is the longest template in characters.
	MaxTemplate = 64
	// MaxLen is the longest text in characters, that of a UUID.
	MaxLen = 36
)

// TemplateError is why a text is no template.
type TemplateError struct {
	Template string
	Why      string
}

func (e *TemplateError) Error() string {
	return fmt.Sprintf("number: template %q: %s", e.Template, e.Why)
}

// The errors of IDs and texts. Each comes with what is wrong.
var (
	ErrOverflow   = errors.New("number: the ID does not fit")
	ErrText       = errors.New("number: not a text of this template")
	ErrCheckDigit = errors.New("number: the check digit is wrong")
)

// A Template writes and reads the numbers of one tag. Make it with [ParseTemplate].
type Template struct {
	text string

	before  string // in front of the date and the number
	date    *date  // of the period, nil: none
	lead    string // the date and the number
	radix   radix
	width   int    // digits of the number
	between string // the number and the check digits
	check   check
	after   string // the check digits, or the number without them

	largest int64
}

// String returns the template as it was parsed.
func (t *Template) String() string { return t.text }

// Len returns the length of every text, in characters.
func (t *Template) Len() int {
	n := 0
	if t.date != nil {
		n = len(t.date.layout)
	}
	return len(t.before) + n + len(t.lead) + t.width + len(t.between) + t.check.len() + len(t.after)
}

// Largest returns the largest ID that fits, or with a date the largest number in each period: see Sequence.
func (t *Template) Largest() int64 { return t.largest }

// Format returns the text of an ID. Error: [ErrOverflow] for an ID that does not fit.
func (t *Template) Format(id int64) (string, error) {
	text, err := t.Append(make([]byte, 0, MaxLen), id)
	return string(text), err
}

// Append appends what Format returns to dst. After an error dst is as it was.
func (t *Template) Append(dst []byte, id int64) ([]byte, error) {
	if !t.Fits(id) {
		return dst, fmt.Errorf("%w: %d: format %s is for 0 to %d%s", ErrOverflow, id, t.text, t.largest, t.each())
	}
	from := len(dst)
	dst = append(dst, t.before...)
	if t.date != nil {
		dst = t.date.append(dst, id>>PeriodBits)
	}
	dst = append(dst, t.lead...)
	dst = t.radix.append(dst, t.Sequence(id), t.width)
	dst = append(dst, t.between...)
	dst = t.check.append(dst, from)
	return append(dst, t.after...), nil
}

// Parse returns the ID of a text. Errors: [ErrText], [ErrCheckDigit].
func (t *Template) Parse(text string) (int64, error) {
	digits, ok := strings.CutPrefix(text, t.before)
	if !ok {
		return 0, t.unlike(text, "it does not begin with "+t.before)
	}
	if digits, ok = strings.CutSuffix(digits, t.after); !ok {
		return 0, t.unlike(text, "it does not end with "+t.after)
	}
	n := len(digits) - t.check.len()
	if n < 0 {
		return 0, t.unlike(text, "it is too short")
	}
	digits, check := digits[:n], digits[n:]
	var day int64
	if t.date != nil {
		at := min(len(t.date.layout), len(digits))
		if day, ok = t.date.day(digits[:at]); !ok {
			return 0, t.unlike(text, digits[:at]+" is no date")
		}
		digits = digits[at:]
	}
	if digits, ok = strings.CutPrefix(digits, t.lead); !ok {
		return 0, t.unlike(text, "there is no "+t.lead+" behind the date")
	}
	if digits, ok = strings.CutSuffix(digits, t.between); !ok {
		return 0, t.unlike(text, "there is no "+t.between+" behind the number")
	}
	id, why := t.radix.parse(digits, t.width)
	if why != "" {
		return 0, t.unlike(text, why)
	}
	if t.date != nil {
		if id > t.largest {
			return 0, t.unlike(text, fmt.Sprintf("the number must be 0 to %d", t.largest))
		}
		id |= day << PeriodBits
	}
	want, err := t.Format(id)
	if err != nil {
		return 0, err
	}
	if end := len(want) - len(t.after); want[end-len(check):end] != check {
		return 0, fmt.Errorf("%w: %q: one of its characters was probably mistyped", ErrCheckDigit, text)
	}
	return id, nil
}

// each ends a limit of numbers: " in each day", or nothing.
func (t *Template) each() string {
	if t.date == nil {
		return ""
	}
	return " in each " + t.date.period
}

// unlike is the error of a text that no ID has. It shows one that an ID has.
func (t *Template) unlike(text, why string) error {
	id := min(42, t.largest)
	if t.date != nil {
		id |= exampleDay << PeriodBits
	}
	example, _ := t.Format(id)
	return fmt.Errorf("%w: %q: %s; the format is %s, as in %s", ErrText, text, why, t.text, example)
}

// Overlaps reports whether a text of t may be one of u, or be read as one, for another ID. A tag that gets the format u after t
// must not write such texts. Small and capital letters count as one, because a column may not tell them apart.
func (t *Template) Overlaps(u *Template) bool {
	if t.text == u.text {
		return false
	}
	at, other := t.characters(t.radix.alphabet), u.characters(u.radix.spellings())
	if u.radix.spoken { // see radix.parse
		hyphen := func(c string) bool { return c == "-" }
		at, other = slices.DeleteFunc(at, hyphen), slices.DeleteFunc(other, hyphen)
	}
	if len(at) != len(other) {
		return false
	}
	for i := range at {
		if !strings.ContainsAny(at[i], other[i]) {
			return false
		}
	}
	return true
}

// characters returns what each character of a text may be, in capital letters, where the number has these digits.
func (t *Template) characters(digits string) []string {
	var at []string
	literal := func(s string) {
		for _, c := range strings.ToUpper(s) {
			at = append(at, string(c))
		}
	}
	many := func(n int, s string) {
		for range n {
			at = append(at, strings.ToUpper(s))
		}
	}
	literal(t.before)
	if t.date != nil {
		for _, c := range t.date.layout {
			if c == '-' {
				literal("-")
			} else {
				many(1, "0123456789")
			}
		}
	}
	literal(t.lead)
	many(t.width, digits)
	literal(t.between)
	many(t.check.len(), "0123456789")
	literal(t.after)
	return at
}
