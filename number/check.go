package number

import "slices"

// check is the kind of a template's check digits.
type check string

const (
	noCheck check = ""
	luhn    check = "luhn"
	mod97   check = "mod97"
)

// len returns how many check digits there are.
func (c check) len() int {
	switch c {
	case luhn:
		return 1
	case mod97:
		return 2
	case noCheck:
	}
	return 0
}

// append appends the check digits of what stands in dst behind from.
func (c check) append(dst []byte, from int) []byte {
	switch c {
	case luhn:
		return append(dst, '0'+luhnDigit(dst[from:]))
	case mod97:
		n := mod97Digits(dst[from:])
		return append(dst, '0'+n/10, '0'+n%10)
	case noCheck:
	}
	return dst
}

// luhnDigit doubles every second digit, beginning with the last, and returns what the sum of all digits lacks to a multiple
// of 10.
func luhnDigit(text []byte) byte {
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

// mod97Digits returns the two digits that make the whole number, letters being 10 to 35, 1 modulo 97.
func mod97Digits(text []byte) byte {
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
