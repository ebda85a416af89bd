// Package spread turns texts and numbers into numbers that look like chance, to divide them evenly. The results are the
// same on every node and in every version: who owns a slot, and where the numbers of an entity are kept, rest on them.
package spread

import "hash/fnv"

// Sum returns the FNV-1a hash of a text. Texts that are alike have sums that are alike, until they are mixed.
func Sum(text string) uint64 {
	h := fnv.New64a()
	h.Write([]byte(text))
	return h.Sum64()
}

// Mix spreads a change of any bit over all bits (the finaliser of MurmurHash3).
func Mix(x uint64) uint64 {
	x ^= x >> 33
	x *= 0xff51afd7ed558ccd
	x ^= x >> 33
	x *= 0xc4ceb9fe1a85ec53
	return x ^ x>>33
}
