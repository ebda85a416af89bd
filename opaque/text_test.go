package opaque_test

import (
	"math"
	"strings"
	"testing"

	"github.com/leaf-idgen/leaf/opaque"
)

func TestText(t *testing.T) {
	for _, tc := range []struct {
		text opaque.Text
		id   int64
		want string
	}{
		{opaque.Decimal, 0, "0"},
		{opaque.Decimal, math.MaxInt64, "9223372036854775807"},
		{opaque.Base62, 0, "00000000000"},
		{opaque.Base62, 61, "0000000000z"},
		{opaque.Base62, math.MaxInt64, "AzL8n0Y58m7"},
		{opaque.Crockford, 31, "000000000000Z"},
		{opaque.Crockford, math.MaxInt64, "7ZZZZZZZZZZZZ"},
	} {
		if got := tc.text.Format(tc.id); got != tc.want {
			t.Errorf("%v: %d is %s, want %s", tc.text, tc.id, got, tc.want)
		}
		if back, err := tc.text.Parse(tc.want); err != nil || back != tc.id {
			t.Errorf("%v: %s is %d, %v, want %d", tc.text, tc.want, back, err, tc.id)
		}
		if same, err := opaque.ParseText(tc.text.String()); err != nil || same != tc.text {
			t.Errorf("the name %s is %v, %v", tc.text, same, err)
		}
	}
	if id, err := opaque.Crockford.Parse("o-iLz"); err != nil || id != 1<<10|1<<5|31 {
		t.Errorf("as people write it: %d, %v", id, err)
	}
}

func TestRefusedTexts(t *testing.T) {
	for _, tc := range []struct {
		text       opaque.Text
		from, want string
	}{
		{opaque.Decimal, "", "has no digit"},
		{opaque.Decimal, "-1", "'-' is no digit of decimal"},
		{opaque.Decimal, "9223372036854775808", "must be at most 2^63-1"},
		{opaque.Base62, "AzL8n0Y58m8", "must be at most 2^63-1"},
		{opaque.Base62, "zzzzzzzzzzzzzzzzzzzzzz", "must be at most 2^63-1"},
		{opaque.Base62, "a-b", "'-' is no digit of base62"},
		{opaque.Crockford, "U", "'U' is no digit of crockford"},
		{opaque.Crockford, "--", "has no digit"},
		{opaque.Crockford, "8000000000000", "must be at most 2^63-1"},
	} {
		if got, err := tc.text.Parse(tc.from); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%v: %q is %d, %v, want %s", tc.text, tc.from, got, err, tc.want)
		}
	}
	if _, err := opaque.ParseText("hex"); err == nil {
		t.Error("hex is a text")
	}
}

func FuzzParse(f *testing.F) {
	for _, seed := range []string{"0", "AzL8n0Y58m7", "7ZZZZZZZZZZZZ", "o-iL", "ÿ"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, s string) {
		for _, text := range []opaque.Text{opaque.Decimal, opaque.Base62, opaque.Crockford} {
			id, err := text.Parse(s)
			if err != nil {
				continue
			}
			if back, err := text.Parse(text.Format(id)); id < 0 || err != nil || back != id {
				t.Errorf("%v: %q is %d, and comes back as %d, %v", text, s, id, back, err)
			}
		}
	})
}
