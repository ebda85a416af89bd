package snowflake

import (
	"time"
)

// LeafEpoch is where the original's time begins: 2010-11-04 01:42:54.657 UTC.
const LeafEpoch = 1288834974657

// Leaf is the layout of the original: 41 bits of milliseconds (to 2080), 1,024
// workers, 4,096 IDs per millisecond.
func Leaf() Layout {
	return Layout{Epoch: LeafEpoch, Unit: time.Millisecond, TimeBits: 41, WorkerBits: 10, SequenceBits: 12}
}

// DC is Leaf with its worker bits split in two: 32 datacentres of 32 workers.
func DC() Layout {
	return Layout{Epoch: LeafEpoch, Unit: time.Millisecond, TimeBits: 41, DatacenterBits: 5, WorkerBits: 5, SequenceBits: 12}
}

// Seconds has 32 bits of seconds (to 2146), 1,024 workers and 2,097,152 IDs per
// second: for services that put all their IDs into bursts.
func Seconds() Layout {
	return Layout{Epoch: LeafEpoch, Unit: time.Second, TimeBits: 32, WorkerBits: 10, SequenceBits: 21}
}

// JS53 fits into the 53 bits that a JavaScript number holds exactly: 38 bits of
// 10 ms (to 2097), 64 workers, 512 IDs per 10 ms.
func JS53() Layout {
	return Layout{Epoch: LeafEpoch, Unit: 10 * time.Millisecond, TimeBits: 38, WorkerBits: 6, SequenceBits: 9}
}

var presets = []struct {
	name   string
	layout Layout
}{
	{"leaf", Leaf()},
	{"dc", DC()},
	{"seconds", Seconds()},
	{"js53", JS53()},
}

// Presets returns the names that [ParseLayout] knows.
func Presets() []string {
	names := make([]string, len(presets))
	for i, p := range presets {
		names[i] = p.name
	}
	return names
}

// Preset returns the layout of that name, and whether there is one.
func Preset(name string) (l Layout, ok bool) {
	for _, p := range presets {
		if p.name == name {
			return p.layout, true
		}
	}
	return Layout{}, false
}
