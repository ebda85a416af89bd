package worker

import (
	"hash/fnv"
	"slices"
)

// candidates are the numbers that a claim may take, in three groups of falling worth.
// The numbers without a record are counted, not listed: a layout may have millions.
type candidates struct {
	now int64 // of the claim
	end int64 // of the layout, 0: none

	past int // records that are of use never: past the end

	idle    group // of use at once, and free
	expired group // of use at once, and perhaps held by an owner that is about to renew
	later   group // of use soonest
	soonest int64 // the floor of those
}

// group is some records, and the numbers without one if unused is more than 0.
type group struct {
	records []Record
	unused  int64
}

func (g group) len() int64 { return int64(len(g.records)) + g.unused }

// at returns the group that a number with this floor belongs to, nil if others are of
// use sooner.
func (c *candidates) at(floor int64, expires bool) *group {
	switch {
	case floor <= c.now && expires:
		return &c.expired
	case floor <= c.now:
		return &c.idle
	case c.later.len() == 0 || floor < c.soonest:
		c.later, c.soonest = group{}, floor
	case floor > c.soonest:
		return nil
	}
	return &c.later
}

// put adds a record. expires says that its owner went without a release.
func (c *candidates) put(r Record, expires bool) {
	if c.end != 0 && r.Floor >= c.end {
		c.past++
		return
	}
	if g := c.at(r.Floor, expires); g != nil {
		g.records = append(g.records, r)
	}
}

// putUnused adds so many numbers without a record.
func (c *candidates) putUnused(count, floor int64) {
	if count > 0 {
		if g := c.at(floor, false); g != nil {
			g.unused = count
		}
	}
}

// plenty is how many numbers with a record are enough for claimers that start together.
const plenty = 128

// pick returns one of the best group. Any will do: claimers that start together would
// all try the first one, and all but one lose. A number without a record is the rank-th
// one, from 0, and has the floor of all of those. It is not picked where there are plenty of
// others: in a wide layout each start would leave a record, and each claim reads all records.
func (c *candidates) pick(nonce string) (r Record, rank int64, ok bool) {
	for _, g := range []group{c.idle, c.expired, c.later} {
		if g.len() == 0 {
			continue
		}
		if len(g.records) >= plenty {
			g.unused = 0
		}
		h := fnv.New64a()
		h.Write([]byte(nonce))
		i := int64(h.Sum64() % uint64(g.len()))
		if i < int64(len(g.records)) {
			return g.records[i], -1, true
		}
		return Record{}, i - int64(len(g.records)), true
	}
	return Record{}, -1, false
}

// unusedAt returns the rank-th number from lo on that is not among taken.
func unusedAt(lo, rank int64, taken []int64) int64 {
	slices.Sort(taken)
	n := lo + rank
	for _, t := range slices.Compact(taken) {
		if t > n {
			break
		}
		n++
	}
	return n
}
