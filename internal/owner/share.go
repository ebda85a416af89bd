package owner

import (
	"math"

	"github.com/leaf-idgen/leaf/internal/spread"
)

// Of returns the slot of a tag, by its name. It is the same on every node and in every version.
func Of(tag string, slots int) int {
	return int(spread.Mix(spread.Sum(tag)) % uint64(slots))
}

// score is what a node bids for a slot: the highest bid has it. With u uniform in (0, 1) by node and
// slot, -weight/ln(u) gives each node its share by weight, and a node that joins or leaves moves no
// slot between two others (weighted rendezvous hashing, Schindelhauer and Schomaker 2005).
func score(address string, weight int64, slot int) float64 {
	x := spread.Mix(spread.Sum(address) + uint64(slot)*0x9e3779b97f4a7c15)
	u := (float64(x>>11) + 0.5) / (1 << 53)
	return -float64(weight) / math.Log(u)
}
