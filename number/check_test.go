package number_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/leaf-idgen/leaf/number"
)

const (
	decimal = "0123456789"
	letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
)

// TestMistypedCharacter: one wrong character of the same kind is always found.
func TestMistypedCharacter(t *testing.T) {
	for _, tc := range []struct{ template, letters string }{
		{"{seq:09}-{check:luhn}", letters},
		{"INV{seq:09}-{check:mod97}", letters},
		{"{seq:09:36}{check:mod97}", letters},
		{"{seq:06:crockford}/{check:mod97}", "ABCDEFGHJKMNPQRSTUVWXYZ"}, // I, L and O are digits
	} {
		made := template(t, tc.template)
		rapid.Check(t, func(t *rapid.T) {
			right, err := made.Format(rapid.Int64Range(0, made.Largest()).Draw(t, "id"))
			if err != nil {
				t.Fatal(err)
			}
			wrong, i := []byte(right), rapid.IntRange(0, len(right)-1).Draw(t, "place")
			for _, kind := range []string{decimal, tc.letters} {
				if strings.IndexByte(kind, wrong[i]) >= 0 {
					wrong[i] = rapid.SampledFrom([]byte(kind)).Draw(t, "character")
				}
			}
			if id, err := made.Parse(string(wrong)); err == nil && string(wrong) != right {
				t.Fatalf("%s: %s for %s is read as %d", made, wrong, right, id)
			}
		})
	}
}

// TestSwappedNeighbours: exactly those that the doc comment of Check names are not found.
func TestSwappedNeighbours(t *testing.T) {
	for _, tc := range []struct {
		template string
		missed   []string
	}{
		{"{seq:02}{check:luhn}", []string{"09", "90"}},
		{"{seq:02:36}{check:mod97}", []string{"1B", "2M", "3X", "B1", "M2", "X3"}},
	} {
		made := template(t, tc.template)
		var missed []string
		for id := range made.Largest() + 1 {
			right, err := made.Format(id)
			if err != nil {
				t.Fatal(err)
			}
			wrong := right[1:2] + right[:1] + right[2:]
			switch _, err := made.Parse(wrong); {
			case err == nil && wrong != right:
				missed = append(missed, right[:2])
			case err != nil && !errors.Is(err, number.ErrCheckDigit):
				t.Errorf("%s: %v", wrong, err)
			}
		}
		if !slices.Equal(missed, tc.missed) {
			t.Errorf("%s: not found are %q, want %q", tc.template, missed, tc.missed)
		}
	}
}

// TestTestOfOthers: the numbers pass the tests that others make: a Luhn sum, and a remainder of 1 modulo 97.
func TestTestOfOthers(t *testing.T) {
	luhn, mod97 := template(t, "26-{seq:08}-{check:luhn}"), template(t, "Inv/{seq:08:36}.{check:mod97}")
	rapid.Check(t, func(t *rapid.T) {
		id := rapid.Int64Range(0, luhn.Largest()).Draw(t, "id")
		text, err := luhn.Format(id)
		if err != nil {
			t.Fatal(err)
		}
		sum := 0
		digits := strings.ReplaceAll(text, "-", "")
		for i := range len(digits) {
			n := int(digits[len(digits)-1-i]-'0') << (i % 2)
			sum += n/10 + n%10
		}
		if sum%10 != 0 {
			t.Fatalf("%s has the sum %d", text, sum)
		}
		if text, err = mod97.Format(id); err != nil {
			t.Fatal(err)
		}
		rest := 0
		for _, c := range strings.ToUpper(text) {
			switch n := strings.IndexRune(decimal+letters, c); {
			case n > 9:
				rest = (100*rest + n) % 97
			case n >= 0:
				rest = (10*rest + n) % 97
			}
		}
		if rest != 1 {
			t.Fatalf("%s leaves %d", text, rest)
		}
	})
}
