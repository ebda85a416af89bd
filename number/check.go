package number

import "slices"

// Check is the kind of a template's check digits.
type Check string

// The kinds. They find what people do when they type a number:
//
//	                               Luhn                 MOD 97-10
//	one wrong digit                always               always
//	one wrong letter               not covered          always
//	a letter for a digit           not covered          96 of 97
//	two neighbours swapped         all but 09 and 90    all but B1, M2, X3 and 1B, 2M, 3X
//	anything else                  9 of 10              96 of 97
const (
	NoCheck Check = ""
	// Luhn is the method of payment cards: one digit over all decimal digits. It takes decimal numbers only, and does
	// not count letters.
	Luhn Check = "luhn"
	// Mod97 is ISO 7064 MOD 97-10: two digits over all letters and digits. A letter counts as 10 to 35, whether it
	// is small or capital, so it is not for numbers with radix 62.
	Mod97 Check = "mod97"
)

// len returns how many check digits there are.
func (c Check) len() int {
	switch c {
	case Luhn:
		return 1
	case Mod97:
		return 2
	case NoCheck:
	}
	return 0
}

// append appends the check digits of what stands in dst behind from.
func (c Check) append(dst []byte, from int) []byte {
	switch c {
	case Luhn:
		return append(dst, '0'+luhn(dst[from:]))
	case Mod97:
		n := mod97(dst[from:])
		return append(dst, '0'+n/10, '0'+n%10)
	case NoCheck:
	}
	return dst
}

// luhn doubles every second digit, beginning with the last, and returns what the sum of all digits lacks to a multiple
// of 10.
func luhn(text []byte) byte {
	sum, double := 0, true
	for _, c := range slices.Backward(text) {
		if c < '0' || c > '9' {
			continue
		}
		n := int(c - '0')
		if double {
			if n *= 2; n > 9 {
				n -= 9
			}
		}
		sum, double = sum+n, !double
	}
	return byte((10 - sum%10) % 10)
}

// mod97 returns the two digits that make the whole number, letters being 10 to 35, 1 modulo 97.
func mod97(text []byte) byte {
	rest := 0
	for _, c := range text {
		switch {
		case '0' <= c && c <= '9':
			rest = (rest*10 + int(c-'0')) % 97
		case 'A' <= c && c <= 'Z':
			rest = (rest*100 + int(c-'A') + 10) % 97
		case 'a' <= c && c <= 'z':
			rest = (rest*100 + int(c-'a') + 10) % 97
		}
	}
	return byte(98 - rest*100%97)
}
