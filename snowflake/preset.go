package snowflake

import (
	"fmt"
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
// 10 ms (to 2097), 64 workers, 512 IDs per 10 ms. [ParseLayout] refuses a change
// of it that is wider, or that ends before 2050.
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

const jsBits = 53 // of an integer that a JavaScript number holds exactly

// js53Lasts is until when a changed js53 lasts at least. With units of 1 ms, its 38 bits of
// time would have been over in 2019.
var js53Lasts = time.Date(2050, 1, 1, 0, 0, 0, 0, time.UTC)

// keepsJS53 returns an ErrInvalid if l, which is js53 with other fields, has IDs of more
// than 53 bits or ends too early. A layout of the same fields without the name js53
// promises neither.
func (l Layout) keepsJS53() error {
	if sum := l.Bits(); sum > jsBits {
		return invalid("time+datacenter+worker+sequence", sum,
			"must be at most 53 bits with js53, so that JavaScript reads every ID exactly; without the name js53, wider fields are possible")
	}
	if end := l.End(); end.Before(js53Lasts) {
		return invalid("time", l.TimeBits, fmt.Sprintf("must last until %s with js53; from epoch=%d, with unit=%v, it lasts until %s",
			js53Lasts.Format(time.DateOnly), l.Epoch, l.Unit, end.Format(time.DateOnly)))
	}
	return nil
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
