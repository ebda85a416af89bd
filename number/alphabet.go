package number

import (
	"math"
	"strconv"
)

// radix is how digits of a number are written.
type radix struct {
	name     string
	alphabet string // in the order of ASCII, so that texts are ordered as numbers are
	spoken   bool   // people's spellings of a digit are read, too
}

// radixes are all, the default first.
var radixes = []radix{
	{name: "10", alphabet: "0123456789"},
	{name: "16", alphabet: "0123456789ABCDEF"},
	{name: "36", alphabet: "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"},
	{name: "62", alphabet: "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"},
	{name: "crockford", alphabet: "0123456789ABCDEFGHJKMNPQRSTVWXYZ", spoken: true},
}

// digits returns how many digits the largest ID has.
func (r radix) digits() int {
	base, n := uint64(len(r.alphabet)), 0
	for rest := uint64(math.MaxInt64); rest > 0; rest /= base {
		n++
	}
	return n
}

// largest returns the largest ID of at most width digits.
func (r radix) largest(width int) int64 {
	base, n := int64(len(r.alphabet)), int64(0)
	for range width {
		if n > (math.MaxInt64-(base-1))/base {
			return math.MaxInt64
		}
		n = n*base + base - 1
	}
	return n
}

// append appends an ID of at most width digits, with zeros in front.
func (r radix) append(dst []byte, id int64, width int) []byte {
	base, end := int64(len(r.alphabet)), len(dst)+width
	for len(dst) < end {
		dst = append(dst, r.alphabet[0])
	}
	for i := end - 1; id > 0; i-- {
		dst[i] = r.alphabet[id%base]
		id /= base
	}
	return dst
}

// parse reads exactly width digits. why is "" if they are a number.
func (r radix) parse(digits string, width int) (id int64, why string) {
	base, n := int64(len(r.alphabet)), 0
	for i := range len(digits) {
		c := digits[i]
		if r.spoken && c == '-' {
			continue
		}
		digit := r.digit(c)
		switch {
		case digit < 0:
			return 0, quoteByte(digits, i) + " is no digit of radix " + r.name
		case id > (math.MaxInt64-digit)/base:
			return 0, "the number is above 2^63-1"
		}
		id = id*base + digit
		n++
	}
	if n != width {
		return 0, "the number has " + strconv.Itoa(n) + " digits and must have " + strconv.Itoa(width)
	}
	return id, ""
}

// spellings returns all characters that digit reads, in capital letters.
func (r radix) spellings() string {
	if r.spoken {
		return r.alphabet + "ILO"
	}
	return r.alphabet
}

// digit returns the value of a character, -1 if it is no digit.
func (r radix) digit(c byte) int64 {
	if r.spoken {
		if 'a' <= c && c <= 'z' {
			c -= 'a' - 'A'
		}
		switch c {
		case 'I', 'L':
			c = '1'
		case 'O':
			c = '0'
		}
	}
	for i := range len(r.alphabet) {
		if r.alphabet[i] == c {
			return int64(i)
		}
	}
	return -1
}

// quoteByte quotes the character of s that begins at byte i.
func quoteByte(s string, i int) string {
	for _, c := range s[i:] {
		return strconv.QuoteRune(c)
	}
	return `""`
}
