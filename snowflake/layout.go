package snowflake

import (
	"fmt"
	"time"
)

const (
	maxTimeBits = 43      // 278 years of milliseconds; leaves the generator's counter 20 bits
	maxBits     = 63      // the sign bit stays 0
	maxEpoch    = 1 << 43 // in the year 2248
)

// Layout says how the bits of an ID are used: from the top, below the sign bit,
// the time in units since the epoch, then datacentre, worker and sequence. Two
// equal Layouts mean the same thing by every ID.
//
// The methods other than Validate expect a Layout that Validate accepts.
type Layout struct {
	// Epoch is where time 0 begins, in Unix milliseconds, 0 to 2^43.
	Epoch int64
	// Unit is the length of one unit of time: 1 ms, 10 ms or 1 s.
	Unit time.Duration
	// TimeBits is the width of the time, 1 to 43.
	TimeBits int
	// DatacenterBits is the width of the datacentre, 0 if the layout has none.
	DatacenterBits int
	// WorkerBits is the width of the worker, 0 if there is only ever one.
	WorkerBits int
	// SequenceBits is the width of the number within one unit.
	//
	// All four widths together are at most 63, and TimeBits and SequenceBits
	// together at most 62, so that the generator's word has one bit to spare.
	SequenceBits int
}

// Parts are the fields of an ID.
type Parts struct {
	Unit       int64 // units of time since the epoch; Layout.Millis tells when that was
	Datacenter int64
	Worker     int64
	Sequence   int64
}

// Validate returns an ErrInvalid if a field or a sum of fields is outside its limits.
func (l Layout) Validate() error {
	if l.Epoch < 0 || l.Epoch > maxEpoch {
		return invalid("epoch", l.Epoch, fmt.Sprintf("must be 0 to %d (Unix milliseconds)", int64(maxEpoch)))
	}
	switch l.Unit {
	case time.Millisecond, 10 * time.Millisecond, time.Second:
	default:
		return invalid("unit", l.Unit, "must be 1ms, 10ms or 1s")
	}
	for _, f := range []struct {
		name          string
		bits, lo, top int
	}{
		{"time", l.TimeBits, 1, maxTimeBits},
		{"datacenter", l.DatacenterBits, 0, maxBits},
		{"worker", l.WorkerBits, 0, maxBits},
		{"sequence", l.SequenceBits, 0, maxBits},
	} {
		if f.bits < f.lo || f.bits > f.top {
			return invalid(f.name, f.bits, fmt.Sprintf("must be %d to %d bits", f.lo, f.top))
		}
	}
	if sum := l.Bits(); sum > maxBits {
		return invalid("time+datacenter+worker+sequence", sum, "must be at most 63 bits")
	}
	if sum := l.TimeBits + l.SequenceBits; sum > maxBits-1 {
		return invalid("time+sequence", sum, "must be at most 62 bits")
	}
	return nil
}

// Bits returns the width of an ID: every ID is below 1 << Bits().
func (l Layout) Bits() int {
	return l.TimeBits + l.DatacenterBits + l.WorkerBits + l.SequenceBits
}

// Encode returns the ID of p, or an ErrInvalid that names the field of p which
// does not fit its width.
func (l Layout) Encode(p Parts) (int64, error) {
	var id int64
	for _, f := range []struct {
		name  string
		value int64
		bits  int
	}{
		{"unit", p.Unit, l.TimeBits},
		{"datacenter", p.Datacenter, l.DatacenterBits},
		{"worker", p.Worker, l.WorkerBits},
		{"sequence", p.Sequence, l.SequenceBits},
	} {
		if err := l.fits(f.name, f.value, f.bits); err != nil {
			return 0, err
		}
		id = id<<f.bits | f.value
	}
	return id, nil
}

// Decode returns the fields of id, or an ErrInvalid if id is negative or has more
// bits than the layout.
func (l Layout) Decode(id int64) (Parts, error) {
	if err := l.fits("id", id, l.Bits()); err != nil {
		return Parts{}, err
	}
	take := func(bits int) int64 {
		v := id & mask(bits)
		id >>= bits
		return v
	}
	var p Parts
	p.Sequence = take(l.SequenceBits)
	p.Worker = take(l.WorkerBits)
	p.Datacenter = take(l.DatacenterBits)
	p.Unit = take(l.TimeBits)
	return p, nil
}

// Fingerprint returns a short stable text that differs for any two layouts, for
// registries and files to remember: "e1288834974657 u1ms t41 d0 w10 s12".
func (l Layout) Fingerprint() string {
	return fmt.Sprintf("e%d u%v t%d d%d w%d s%d",
		l.Epoch, l.Unit, l.TimeBits, l.DatacenterBits, l.WorkerBits, l.SequenceBits)
}

func (l Layout) fits(field string, value int64, bits int) error {
	if value < 0 || value > mask(bits) {
		return invalid(field, value, fmt.Sprintf("must be 0 to %d", mask(bits)))
	}
	return nil
}

// mask returns the largest value of a field of so many bits.
func mask(bits int) int64 { return int64(1)<<bits - 1 }
