package owner

import (
	"hash/fnv"
	"math"
)

// Of returns the slot of a tag: FNV-1a of its name, the same on every node and in every version.
func Of(tag string, slots int) int {
	h := fnv.New64a()
	h.Write([]byte(tag))
	return int(mix(h.Sum64()) % uint64(slots))
}

// score is what a node bids for a slot: the highest bid has it. With u uniform in (0, 1) by node and
// slot, -weight/ln(u) gives each node its share by weight, and a node that joins or leaves moves no
// slot between two others (weighted rendezvous hashing, Schindelhauer and Schomaker 2005).
func score(address string, weight int64, slot int) float64 {
	h := fnv.New64a()
	h.Write([]byte(address))
	x := mix(h.Sum64() + uint64(slot)*0x9e3779b97f4a7c15)
	u := (float64(x>>11) + 0.5) / (1 << 53)
	return -float64(weight) / math.Log(u)
}

// mix spreads a change of any bit over all bits (the finaliser of MurmurHash3).
func mix(x uint64) uint64 {
	x ^= x >> 33
	x *= 0xff51afd7ed558ccd
	x ^= x >> 33
	x *= 0xc4ceb9fe1a85ec53
	return x ^ x>>33
}
