package opaque

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/leaf-idgen/leaf"
)

// A Text says how a number from 0 to 2^63-1 is written.
type Text int

// How a number may be written.
const (
	Decimal   Text = iota // up to 19 digits
	Base62                // 11 characters of 0-9, A-Z and a-z: the shortest for addresses
	Crockford             // 13 characters of 0-9 and A-Z without I, L, O, U: for people who read them aloud
)

// texts has the name and the alphabet of each.
var texts = [...]struct {
	name, alphabet string
	length         int // of a text; 0: as short as it can be
}{
	Decimal:   {"decimal", "0123456789", 0},
	Base62:    {"base62", "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz", 11},
	Crockford: {"crockford", "0123456789ABCDEFGHJKMNPQRSTVWXYZ", 13},
}

// ParseText returns the text with a name: decimal, base62 or crockford.
func ParseText(name string) (Text, error) {
	for t := range texts {
		if texts[t].name == name {
			return Text(t), nil
		}
	}
	return 0, leaf.BadField("text", name, "must be decimal, base62 or crockford")
}

// String returns the name.
func (t Text) String() string { return texts[t].name }

// Format writes a number. Texts of base62 and Crockford have one length, so that they sort as their numbers do.
func (t Text) Format(id int64) string { return string(t.Append(nil, id)) }

// Append appends what Format returns to dst.
func (t Text) Append(dst []byte, id int64) []byte {
	if t == Decimal {
		return strconv.AppendInt(dst, id, 10)
	}
	form := texts[t]
	start := len(dst)
	dst = append(dst, form.alphabet[:form.length]...) // room
	base := int64(len(form.alphabet))
	for i := len(dst) - 1; i >= start; i-- {
		dst[i] = form.alphabet[id%base]
		id /= base
	}
	return dst
}

// Parse reads a number, also one without the zeros in front. Crockford's text may have small letters, I and L for 1,
// O for 0, and hyphens. What is no number from 0 to 2^63-1 fails with [leaf.ErrBadRequest].
func (t Text) Parse(s string) (int64, error) {
	form := texts[t]
	digits := s
	if t == Crockford {
		digits = spoken.Replace(strings.ToUpper(s))
	}
	base, n := int64(len(form.alphabet)), int64(0)
	for _, c := range digits {
		digit := int64(strings.IndexRune(form.alphabet, c))
		if digit < 0 {
			return 0, leaf.BadField("opaque ID", s, fmt.Sprintf("%q is no digit of %s", c, form.name))
		}
		if n > (math.MaxInt64-digit)/base {
			return 0, leaf.BadField("opaque ID", s, "must be at most 2^63-1")
		}
		n = n*base + digit
	}
	if digits == "" {
		return 0, leaf.BadField("opaque ID", s, "has no digit")
	}
	return n, nil
}

// spoken undoes what people do to Crockford's digits.
var spoken = strings.NewReplacer("I", "1", "L", "1", "O", "0", "-", "")
