package number_test

import (
	"errors"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/leaf-idgen/leaf/number"
)

func template(t rapid.TB, text string) *number.Template {
	t.Helper()
	made, err := number.ParseTemplate(text)
	if err != nil {
		t.Fatal(err)
	}
	return made
}

// TestVectors: texts that are out there must stay what they are. Those with check digits are published examples.
func TestVectors(t *testing.T) {
	for _, tc := range []struct {
		name, template string
		id             int64
		want           string
	}{
		{"decimal", "INV-{seq:08}", 42, "INV-00000042"},
		{"radix 10 by name", "{seq:03:10}x", 999, "999x"},
		{"radix 16", "{seq:04:16}", 0xbeef, "BEEF"},
		{"radix 36", "{seq:03:36}", 35, "00Z"},
		{"radix 62", "{seq:03:62}", 62*62 - 1, "0zz"},
		{"Crockford", "R{seq:06:crockford}", 32 * 31, "R0000Z0"},
		{"the largest ID, decimal", "{seq:019}", math.MaxInt64, "9223372036854775807"},
		{"the largest ID, Crockford", "{seq:013:crockford}", math.MaxInt64, "7ZZZZZZZZZZZZ"},
		{"the largest ID, radix 62", "{seq:011:62}", math.MaxInt64, "AzL8n0Y58m7"},
		{"Luhn of the patent", "{seq:010}{check:luhn}", 7992739871, "79927398713"},
		{"Luhn of a payment card", "{seq:015}{check:luhn}", 411111111111111, "4111111111111111"},
		{"Luhn, digits in front", "4111-{seq:011}-{check:luhn}", 11111111111, "4111-11111111111-1"},
		{"IBAN", "WEST{seq:014}GB{check:mod97}", 12345698765432, "WEST12345698765432GB82"},
		{"creditor reference", "{seq:012}RF{check:mod97}", 539007547034, "539007547034RF18"},
		{"ISO 7064, an example of python-stdnum", "9999{seq:016}{check:mod97}", 1234567890121414, "9999123456789012141490"},
		{"small letters count as capital ones", "west{seq:014}gb{check:mod97}", 12345698765432, "west12345698765432gb82"},
		{"text behind the check digits", "{seq:010}{check:luhn}/26", 7992739871, "79927398713/26"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			made := template(t, tc.template)
			got, err := made.Format(tc.id)
			if err != nil || got != tc.want || len(got) != made.Len() {
				t.Errorf("%d is %q, %v, want %q of %d characters", tc.id, got, err, tc.want, made.Len())
			}
			if id, err := made.Parse(tc.want); err != nil || id != tc.id {
				t.Errorf("%q comes back as %d, %v", tc.want, id, err)
			}
		})
	}
}

// TestTemplates: what is a template, and how large its IDs are.
func TestTemplates(t *testing.T) {
	for _, tc := range []struct {
		template string
		largest  int64
		want     string // "": a good one
	}{
		{"{seq:01}", 9, ""},
		{"{seq:08}", 99999999, ""},
		{"{seq:018}", 999999999999999999, ""},
		{"{seq:019}", math.MaxInt64, ""},
		{"{seq:016:16}", math.MaxInt64, ""},
		{"{seq:015:16}", 1<<60 - 1, ""},
		{"{seq:013:36}", math.MaxInt64, ""},
		{"{seq:011:62}", math.MaxInt64, ""},
		{"{seq:013:crockford}", math.MaxInt64, ""},
		{"{seq:012:crockford}", 1<<60 - 1, ""},
		{"!#$%&'()*+,-./:;<=>?@[]^_`|~{seq:08}", 99999999, ""},
		{strings.Repeat("a", 28) + "{seq:08}", 99999999, ""},

		{"", 0, "needs the number"},
		{"INV-", 0, "needs the number"},
		{"{seq}", 0, "the width must be a 0 and 1 to 19 digits, such as {seq:08}"},
		{"{seq:8}", 0, "the width must be"},
		{"{seq:00}", 0, "the width must be"},
		{"{seq:008}", 0, "the width must be"},
		{"{seq:020}", 0, "1 to 19 digits"},
		{"{seq:014:crockford}", 0, "1 to 13 digits"},
		{"{seq:0999999999999999999999}", 0, "the width must be"},
		{"{seq:0-8}", 0, "the width must be"},
		{"{seq:0 8}", 0, "' ' must not be"},
		{"{seq:08:32}", 0, "the radix must be 10, 16, 36, 62 or crockford"},
		{"{seq:08:}", 0, "the radix must be"},
		{"{seq:08:10:10}", 0, "the radix must be"},
		{"{seq:04}{seq:04}", 0, "must have {seq} once"},
		{"{check:luhn}{seq:04}", 0, "must come behind {seq}"},
		{"{seq:04}{check:luhn}{check:luhn}", 0, "at most once"},
		{"{seq:04}{check:crc}", 0, "must be {check:luhn} or {check:mod97}"},
		{"{seq:04}{check}", 0, "must be {check:luhn} or {check:mod97}"},
		{"{seq:04:16}{check:luhn}", 0, "use {check:mod97} with radix 16"},
		{"{seq:04:62}{check:mod97}", 0, "is not for radix 62"},
		{"INV-{yyyyMMdd}-{seq:08}", 99999999, ""},
		{"{yyyy-MM}{seq:013}", 1<<number.PeriodBits - 1, ""},
		{"{seq:08}-{yyyy}", 0, "must stand in front of {seq}"},
		{"{yyyy}{yyyyMM}{seq:08}", 0, "a date at most once"},
		{"{yyMMdd}{seq:08}", 0, "the dates are {yyyyMMdd}"},
		{"{yyyyMMddHH}{seq:08}", 0, "the dates are {yyyyMMdd}"},
		{"{a\nb}{seq:08}", 0, `'\n' must not be`},
		{`{"}{seq:08}`, 0, "must not be"},
		{"{opaque}", 0, "ask for them with format=opaque"},
		{"{opaque:base62}{seq:08}", 0, "ask for them"},
		{"{}{seq:08}", 0, "{} is no field"},
		{"{sequence:08}", 0, "{sequence:08} is no field"},
		{"{seq:08", 0, "{seq:08 has no } at its end"},
		{"{{seq:08}}", 0, "is no field"},
		{"{seq:08}}", 0, "must not be in a format"},
		{"a b{seq:08}", 0, "' ' must not be"},
		{`a"{seq:08}`, 0, "must not be"},
		{`{seq:08}\`, 0, "must not be"},
		{"订单{seq:08}", 0, "'订' must not be"},
		{"a\x00{seq:08}", 0, "must not be"},
		{"a\xff{seq:08}", 0, "must not be"},
		{strings.Repeat("a", 29) + "{seq:08}", 0, "would have 37 characters, and at most 36"},
		{strings.Repeat("a", 57) + "{seq:08}", 0, "must have at most 64 characters"},
	} {
		t.Run(tc.template, func(t *testing.T) {
			made, err := number.ParseTemplate(tc.template)
			if tc.want != "" {
				if wrong, ok := errors.AsType[*number.TemplateError](err); made != nil || !ok || !strings.Contains(wrong.Why, tc.want) {
					t.Errorf("got %v, want a TemplateError that says %q", err, tc.want)
				}
				return
			}
			if err != nil || made.Largest() != tc.largest || made.String() != tc.template {
				t.Errorf("%v, %v; want %d", made, err, tc.largest)
			}
		})
	}
}

// TestOverflow: an ID that does not fit is an error, and dst is as it was.
func TestOverflow(t *testing.T) {
	for _, text := range []string{"{seq:03}", "a{seq:02:16}{check:mod97}", "{seq:05:crockford}", "{seq:01:62}", "{seq:019}"} {
		made := template(t, text)
		ids := []int64{-1, math.MinInt64}
		if made.Largest() < math.MaxInt64 {
			ids = append(ids, made.Largest()+1, math.MaxInt64)
		}
		for _, id := range ids {
			if got, err := made.Append([]byte("x"), id); !errors.Is(err, number.ErrOverflow) || string(got) != "x" {
				t.Errorf("%s: %d is %q, %v, want ErrOverflow", text, id, got, err)
			}
		}
	}
}

// parts of a template, of which any combination but those of refused is one.
func anyTemplate(t *rapid.T) *number.Template {
	literal := rapid.StringMatching(`[A-Za-z0-9/:._-]{0,5}`)
	radix := rapid.SampledFrom([]string{"", ":10", ":16", ":36", ":62", ":crockford"}).Draw(t, "radix")
	check := rapid.SampledFrom([]string{"", "{check:luhn}", "{check:mod97}"}).Draw(t, "check")
	width := rapid.SampledFrom([]string{"01", "02", "05", "08", "011"}).Draw(t, "width")
	made, err := number.ParseTemplate(literal.Draw(t, "before") + "{seq:" + width + radix + "}" + literal.Draw(t, "between") + check + literal.Draw(t, "after"))
	if err != nil {
		t.Skip(err)
	}
	return made
}

// TestRoundTrip: each ID comes back from its text, whose length is the template's, and texts have the order of IDs.
func TestRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		made := anyTemplate(t)
		ids := rapid.Int64Range(0, made.Largest())
		a, b := ids.Draw(t, "a"), ids.Draw(t, "b")
		texts := make([]string, 2)
		for i, id := range []int64{a, b} {
			text, err := made.Format(id)
			if err != nil || len(text) != made.Len() {
				t.Fatalf("%s: %d is %q, %v", made, id, text, err)
			}
			if back, err := made.Parse(text); err != nil || back != id {
				t.Fatalf("%s: %d is %q and comes back as %d, %v", made, id, text, back, err)
			}
			texts[i] = text
		}
		if (a < b) != (texts[0] < texts[1]) || (a == b) != (texts[0] == texts[1]) {
			t.Fatalf("%s: %d and %d are %q and %q", made, a, b, texts[0], texts[1])
		}
	})
}

// TestOtherTexts: what Format does not write is refused, with the reason.
func TestOtherTexts(t *testing.T) {
	for _, tc := range []struct {
		template, text string
		want           error
		says           string
	}{
		{"INV-{seq:04}", "INV-042", number.ErrText, "has 3 digits and must have 4"},
		{"INV-{seq:04}", "INV-00042", number.ErrText, "has 5 digits"},
		{"INV-{seq:04}", "INV-004x", number.ErrText, "'x' is no digit of radix 10"},
		{"INV-{seq:04}", "INV-00四", number.ErrText, "'四' is no digit"},
		{"INV-{seq:04}", "INV--042", number.ErrText, "'-' is no digit"},
		{"INV-{seq:04}", "inv-0042", number.ErrText, "does not begin with INV-; the format is INV-{seq:04}, as in INV-0042"},
		{"INV-{seq:04}", "0042", number.ErrText, "does not begin"},
		{"INV-{seq:04}", "", number.ErrText, "does not begin"},
		{"INV-{seq:04}", "INV-0042 ", number.ErrText, "no digit"},
		{"{seq:04}/26", "0042/27", number.ErrText, "does not end with /26"},
		{"{seq:04}/26-{check:luhn}", "0042/27-1", number.ErrText, "no /26- behind the number"},
		{"{seq:04}{check:mod97}", "1", number.ErrText, "too short"},
		{"{seq:01}", "42", number.ErrText, "as in 9"},
		{"{seq:04:16}", "beef", number.ErrText, "'b' is no digit of radix 16"},
		{"{seq:04:36}", "00zz", number.ErrText, "no digit"},
		{"{seq:04:crockford}", "000U", number.ErrText, "no digit of radix crockford"},
		{"{seq:04:crockford}", "000\u017f", number.ErrText, "no digit of radix crockford"},
		{"{seq:019}", "9223372036854775808", number.ErrText, "above 2^63-1"},
		{"{seq:013:crockford}", "8000000000000", number.ErrText, "above 2^63-1"},
		{"{seq:010}{check:luhn}", "79927398710", number.ErrCheckDigit, "mistyped"},
		{"{seq:010}{check:luhn}", "7992739871x", number.ErrCheckDigit, "mistyped"},
		{"{seq:012}RF{check:mod97}", "539007547034RF81", number.ErrCheckDigit, "mistyped"},
		{"{seq:012}RF{check:mod97}", "539007547043RF18", number.ErrCheckDigit, "mistyped"},
	} {
		if id, err := template(t, tc.template).Parse(tc.text); !errors.Is(err, tc.want) || !strings.Contains(err.Error(), tc.says) {
			t.Errorf("%s: %q is %d, %v; want %v that says %q", tc.template, tc.text, id, err, tc.want, tc.says)
		}
	}
}

// TestSpoken: what people do to Crockford's digits is undone, in the number only.
func TestSpoken(t *testing.T) {
	made := template(t, "R-{seq:08:crockford}-{check:mod97}")
	want, err := made.Format(1<<35 + 33)
	if err != nil || want != "R-10000011-66" {
		t.Fatal(want, err)
	}
	for _, text := range []string{want, "R-1000-0011-66", "R-IOOOoolL-66", "R-i-0-000-0-1-1-66"} {
		if id, err := made.Parse(text); err != nil || id != 1<<35+33 {
			t.Errorf("%q is %d, %v", text, id, err)
		}
	}
	if _, err := made.Parse("r-10000011-66"); !errors.Is(err, number.ErrText) {
		t.Errorf("a small letter in front of the number: %v", err)
	}
}

// TestOverlaps: which templates may follow one another at a tag.
func TestOverlaps(t *testing.T) {
	for _, tc := range []struct {
		a, b string
		want bool
	}{
		{"INV-{seq:08}", "INV-{seq:08}", false},
		{"INV-{seq:08}", "INV-{seq:09}", false},
		{"INV-{seq:08}", "INX-{seq:08}", false},
		{"INV-{seq:08}", "INV-{seq:07}-{check:luhn}", false},
		{"INV-{seq:08}", "INV-{seq:07}{check:luhn}", true},
		{"INV-{seq:08}", "INV-{seq:08:16}", true},
		{"INV-{seq:08}", "inv-{seq:08}", true},
		{"INV-{seq:08}", "INV-0{seq:07}", true},
		{"INV-{seq:08}", "INV{seq:09}", false},
		{"A{seq:07:36}", "{seq:08:62}", true},
		{"_{seq:07:36}", "{seq:08:62}", false},
		{"U{seq:07:crockford}", "{seq:08:crockford}", false},
		{"{seq:08}a", "{seq:08:36}B", false},
		{"{seq:08:36}a", "{seq:09:62}", true},
	} {
		a, b := template(t, tc.a), template(t, tc.b)
		if a.Overlaps(b) != tc.want || b.Overlaps(a) != tc.want {
			t.Errorf("%s and %s: %t and %t, want %t", tc.a, tc.b, a.Overlaps(b), b.Overlaps(a), tc.want)
		}
	}
}

// TestOverlapsAsRead: digits of Crockford are also read as people spell them, so it matters which template comes after the other.
func TestOverlapsAsRead(t *testing.T) {
	for _, tc := range []struct {
		before, after string
		want          bool
	}{
		{"O{seq:07}", "{seq:08:crockford}", true},
		{"{seq:08:crockford}", "O{seq:07}", false},
		{"i{seq:07}", "{seq:08:crockford}", true},
		{"INV-{seq:07}", "{seq:010:crockford}", true},
		{"INU-{seq:07}", "{seq:010:crockford}", false},
		{"R-{seq:07}", "R{seq:07:crockford}", true},
		{"R{seq:07:crockford}", "R-{seq:07}", false},
		{"R-{seq:07}", "S{seq:07:crockford}", false},
	} {
		if got := template(t, tc.before).Overlaps(template(t, tc.after)); got != tc.want {
			t.Errorf("%s after %s: %t, want %t", tc.after, tc.before, got, tc.want)
		}
	}
}

// TestOverlapsIsOfTwo: that a template fits the one before says nothing of those before that, as docs/NUMBERS.md shows.
func TestOverlapsIsOfTwo(t *testing.T) {
	first, second, third := template(t, "{seq:08}"), template(t, "{seq:09}"), template(t, "{seq:08:36}")
	if first.Overlaps(second) || second.Overlaps(third) || !first.Overlaps(third) {
		t.Errorf("%t, %t, %t; want that only the first and the third overlap", first.Overlaps(second), second.Overlaps(third), first.Overlaps(third))
	}
	a, err := first.Format(2000)
	b, err2 := third.Format(93312)
	if a != "00002000" || a != b || err != nil || err2 != nil {
		t.Errorf("%q and %q, %v, %v", a, b, err, err2)
	}
}

// TestOverlapsIsNoLess: where two templates do not overlap, no text of one is read as another ID by the other.
func TestOverlapsIsNoLess(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b := anyTemplate(t), anyTemplate(t)
		id := rapid.Int64Range(0, a.Largest()).Draw(t, "id")
		text, err := a.Format(id)
		if err != nil {
			t.Fatal(err)
		}
		other, err := b.Parse(text)
		if err != nil || other == id || a.Overlaps(b) {
			return
		}
		t.Fatalf("%q is %d in %s, and is read as %d in %s", text, id, a, other, b)
	})
}

func FuzzParseTemplate(f *testing.F) {
	for _, text := range []string{"INV-{seq:08}", "{seq:07:36}-{check:mod97}/x", "{seq:03}{check:luhn}", "R{seq:06:crockford}", "{yyyy}{seq:08}"} {
		f.Add(text, int64(42), "INV-00000042")
	}
	f.Fuzz(func(t *testing.T, text string, id int64, read string) {
		made, err := number.ParseTemplate(text)
		if err != nil {
			return
		}
		if again := template(t, made.String()); again.Overlaps(made) || again.Len() > number.MaxLen {
			t.Errorf("%q overlaps itself, or has %d characters", text, again.Len())
		}
		if written, err := made.Format(id); err == nil {
			if back, err := made.Parse(written); err != nil || back != id {
				t.Errorf("%q: %d is %q and comes back as %d, %v", text, id, written, back, err)
			}
		} else if 0 <= id && id <= made.Largest() {
			t.Errorf("%q: %d: %v", text, id, err)
		}
		if id, err := made.Parse(read); err == nil {
			if _, err := made.Format(id); err != nil {
				t.Errorf("%q: %q is %d: %v", text, read, id, err)
			}
		}
	})
}

// TestDocumentedTemplates: what the documents tell to type as --format is a template.
func TestDocumentedTemplates(t *testing.T) {
	pages, err := filepath.Glob("../docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	typed := regexp.MustCompile(`--format '([^']+)'`)
	found := 0
	for _, page := range pages {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, format := range typed.FindAllStringSubmatch(string(text), -1) {
			found++
			if _, err := number.ParseTemplate(format[1]); err != nil {
				t.Errorf("%s: %v", filepath.Base(page), err)
			}
		}
	}
	if found < 3 {
		t.Errorf("%d templates in the documents, want 3 or more", found)
	}
}
