package world

import (
	"maps"
	"math/rand/v2"
	"slices"
)

// Kind is a kind of fault; its text is its name in reports.
type Kind string

// The kinds that the network and any server know. Others are declared where they are
// made.
const (
	ServerDown  Kind = "server down"
	CutOff      Kind = "partition"
	RequestLost Kind = "request lost"
	ReplyLost   Kind = "reply lost after the effect"
	CallDelayed Kind = "call delayed past its caller"
	CallDoubled Kind = "call doubled"
	PanicBefore Kind = "driver panics before its request leaves"
	PanicAfter  Kind = "driver panics after the effect"
)

// Faults counts what took effect, by kind. A nil *Faults counts nothing.
type Faults struct{ hits map[Kind]int }

// Hit counts one.
func (f *Faults) Hit(k Kind) {
	if f == nil {
		return
	}
	if f.hits == nil {
		f.hits = map[Kind]int{}
	}
	f.hits[k]++
}

// Count returns how often a kind took effect.
func (f *Faults) Count(k Kind) int {
	if f == nil {
		return 0
	}
	return f.hits[k]
}

// Kinds returns those that took effect, in order of their names.
func (f *Faults) Kinds() []Kind {
	if f == nil {
		return nil
	}
	return slices.Sorted(maps.Keys(f.hits))
}

// draw reports true with the given chance. It draws nothing for 0, so that a fault
// that is off changes no other decision.
func draw(rng *rand.Rand, chance float64) bool { return chance > 0 && rng.Float64() < chance }
