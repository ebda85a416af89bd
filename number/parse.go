package number

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// ParseTemplate reads a template. Error: *[TemplateError].
func ParseTemplate(text string) (*Template, error) {
	p := parser{t: &Template{text: text}}
	if len(text) > MaxTemplate {
		return nil, p.wrong("must have at most %d characters", MaxTemplate)
	}
	for i := range len(text) {
		if c := text[i]; c <= ' ' || c > '~' || c == '"' || c == '\\' {
			return nil, p.unfit(text, i)
		}
	}
	for rest := text; rest != ""; {
		open := strings.IndexByte(rest, '{')
		if open < 0 {
			open = len(rest)
		}
		if err := p.literal(rest[:open]); err != nil {
			return nil, err
		}
		if rest = rest[open:]; rest == "" {
			break
		}
		field, after, closed := strings.Cut(rest[1:], "}")
		if !closed {
			return nil, p.wrong("%s has no } at its end", rest)
		}
		if err := p.field(field); err != nil {
			return nil, err
		}
		rest = after
	}
	t := p.t
	switch {
	case t.width == 0:
		return nil, p.wrong("needs the number, such as {seq:08}")
	case t.Len() > MaxLen:
		return nil, p.wrong("its texts would have %d characters, and at most %d are allowed", t.Len(), MaxLen)
	case t.check == luhn && t.radix.name != "10":
		return nil, p.wrong("{check:luhn} covers decimal digits only; use {check:mod97} with radix %s", t.radix.name)
	case t.check == mod97 && t.radix.name == "62":
		return nil, p.wrong("{check:mod97} does not tell small letters from capital ones, so it is not for radix 62")
	}
	if t.largest = t.radix.largest(t.width); t.date != nil {
		t.largest = min(t.largest, 1<<PeriodBits-1)
	}
	return t, nil
}

// parser fills a template from front to back.
type parser struct{ t *Template }

func (p *parser) wrong(format string, args ...any) error {
	return &TemplateError{p.t.text, fmt.Sprintf(format, args...)}
}

// unfit is the error of a character, which begins at byte i of s.
func (p *parser) unfit(s string, i int) error {
	return p.wrong(`%s must not be in a format: it may have visible ASCII characters without ", \, { and }`, quoteByte(s, i))
}

// literal takes text between two fields.
func (p *parser) literal(s string) error {
	if i := strings.IndexByte(s, '}'); i >= 0 {
		return p.unfit(s, i)
	}
	switch {
	case p.t.width != 0:
		p.t.after = s // or between, if check digits follow
	case p.t.date != nil:
		p.t.lead = s
	default:
		p.t.before = s
	}
	return nil
}

// field takes what stands between { and }.
func (p *parser) field(s string) error {
	name, argument, _ := strings.Cut(s, ":")
	switch name {
	case "seq":
		return p.seq(argument)
	case "check":
		return p.checkDigits(argument)
	case "opaque":
		return p.wrong("{%s}: a format has no opaque IDs; ask for them with format=opaque", s)
	}
	if isDate(s) {
		return p.date(s)
	}
	return p.wrong("{%s} is no field: the fields are {seq:0WIDTH}, {seq:0WIDTH:RADIX}, {check:luhn}, {check:mod97}, and dates such as {yyyyMMdd}", s)
}

func (p *parser) seq(argument string) error {
	t := p.t
	if t.width != 0 {
		return p.wrong("must have {seq} once")
	}
	digits, name, other := strings.Cut(argument, ":")
	if !other {
		name = radixes[0].name
	}
	i := slices.IndexFunc(radixes, func(r radix) bool { return r.name == name })
	if i < 0 {
		return p.wrong("{seq:%s}: the radix must be 10, 16, 36, 62 or crockford", argument)
	}
	t.radix = radixes[i]
	width, err := strconv.ParseUint(strings.TrimPrefix(digits, "0"), 10, 8)
	if most := t.radix.digits(); err != nil || width < 1 || int(width) > most || digits != "0"+strconv.FormatUint(width, 10) {
		return p.wrong("{seq:%s}: the width must be a 0 and 1 to %d digits, such as {seq:08}", argument, most)
	}
	t.width = int(width)
	return nil
}

func (p *parser) checkDigits(argument string) error {
	t := p.t
	switch {
	case t.width == 0:
		return p.wrong("{check} must come behind {seq}: it covers what is in front of it")
	case t.check != noCheck:
		return p.wrong("must have {check} at most once")
	}
	switch c := check(argument); c {
	case luhn, mod97:
		t.check, t.between, t.after = c, t.after, ""
		return nil
	case noCheck:
	}
	return p.wrong("{check:%s}: must be {check:luhn} or {check:mod97}", argument)
}
