package spread

import "strconv"

// Sections is how many sections each sequence has. It must never change: the numbers of an entity are kept in its section.
const Sections = 1024

// Section returns the section of an entity of a sequence, 0 to Sections-1.
func Section(entity string) int {
	x, ok := Number(entity)
	if !ok {
		x = Sum(entity)
	}
	return SectionOf(x)
}

// SectionOf is Section for a number, or for the Sum of a text.
func SectionOf(x uint64) int { return int(Mix(x) % Sections) }

// Number returns the number that names an entity: a decimal number below 2^64 without leading zeros. Any other name is a
// text.
func Number(entity string) (n uint64, ok bool) {
	if entity == "0" || entity != "" && '1' <= entity[0] && entity[0] <= '9' {
		n, err := strconv.ParseUint(entity, 10, 64)
		return n, err == nil
	}
	return 0, false
}
