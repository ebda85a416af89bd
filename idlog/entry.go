package idlog

import (
	"cmp"
	"encoding/binary"
	"math"
	"slices"
	"unsafe"
)

// entry is a record while it is sorted: the IDs lo to hi, both included, of a key that
// is named by its number.
type entry struct {
	lo, hi int64
	key    uint32
}

const entrySize = int64(unsafe.Sizeof(entry{}))

// follows reports whether e begins right after p ends, so that the two can be one. It
// never joins entries that overlap: then the sweep would no longer see it.
func (e entry) follows(p entry) bool {
	return e.key == p.key && p.hi != math.MaxInt64 && e.lo == p.hi+1
}

func compare(a, b entry) int {
	if a.key != b.key {
		return cmp.Compare(a.key, b.key)
	}
	return cmp.Compare(a.lo, b.lo)
}

func sortEntries(all []entry) { slices.SortFunc(all, compare) }

// maxEntry is the most bytes that an encoded entry has.
const maxEntry = 5 + 2*binary.MaxVarintLen64

// delta is the state of both ends of a sorted run: entries are written as what
// distinguishes them from the one before.
//
//	uvarint  2 * (key minus the key before); + 1 if it is a range
//	uvarint  lo minus the lo before of the same key; lo as a varint, if there is none
//	uvarint  hi - lo, if it is a range
type delta struct {
	last entry
	has  bool
}

func (d *delta) append(dst []byte, e entry) []byte {
	head := uint64(e.key-d.last.key) << 1
	if e.hi != e.lo {
		head |= 1
	}
	dst = binary.AppendUvarint(dst, head)
	if d.has && e.key == d.last.key {
		dst = binary.AppendUvarint(dst, uint64(e.lo)-uint64(d.last.lo))
	} else {
		dst = binary.AppendVarint(dst, e.lo)
	}
	if e.hi != e.lo {
		dst = binary.AppendUvarint(dst, uint64(e.hi)-uint64(e.lo))
	}
	d.last, d.has = e, true
	return dst
}

// next decodes an entry. It returns 0 if src has no whole one.
func (d *delta) next(src []byte) (e entry, n int) {
	head, n := binary.Uvarint(src)
	if n <= 0 {
		return entry{}, 0
	}
	e.key = d.last.key + uint32(head>>1)
	var m int
	if d.has && e.key == d.last.key {
		var step uint64
		step, m = binary.Uvarint(src[n:])
		e.lo = int64(uint64(d.last.lo) + step)
	} else {
		e.lo, m = binary.Varint(src[n:])
	}
	if m <= 0 {
		return entry{}, 0
	}
	n += m
	e.hi = e.lo
	if head&1 == 1 {
		more, m := binary.Uvarint(src[n:])
		if m <= 0 {
			return entry{}, 0
		}
		n += m
		e.hi = int64(uint64(e.lo) + more)
	}
	d.last, d.has = e, true
	return e, n
}
