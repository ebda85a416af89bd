package sequence

import (
	"math/bits"
	"slices"
)

// table holds the positions of a section: open addressing with linear probes, in 12 bytes a cell. It grows by
// a twelfth when 7 cells of 8 are in use. So a position costs less than 16 bytes. In a map it costs from 19 to 39.
type table struct {
	cells []cell
	used  int
}

// cell is one position. The key is in two halves, because a uint64 would make the cell 16 bytes long.
type cell struct {
	low, high uint32
	ahead     uint32 // how far the entity's next number is above the base; 0: the cell is free
}

func (s cell) key() uint64 { return uint64(s.high)<<32 | uint64(s.low) }

// seed makes the place of a key unforeseeable. Otherwise a client could choose entities that share a place.
type seed struct{ xor, factor uint64 }

// place returns where the probes for the key begin, 0 to n-1.
func (s seed) place(key uint64, n int) int {
	high, low := bits.Mul64(key^s.xor, s.factor)
	place, _ := bits.Mul64(high^low, uint64(n))
	return int(place)
}

// find returns the cell of the key, or the free one in which it would be. There is a free one.
func (t *table) find(s seed, key uint64) *cell {
	i := s.place(key, len(t.cells))
	for {
		at := &t.cells[i]
		if at.ahead == 0 || at.key() == key {
			return at
		}
		if i++; i == len(t.cells) {
			i = 0
		}
	}
}

// get returns how far the key is ahead, 0 if it has no position.
func (t *table) get(s seed, key uint64) uint32 {
	if t.used == 0 {
		return 0
	}
	return t.find(s, key).ahead
}

// put sets how far the key is ahead, 1 or more.
func (t *table) put(s seed, key uint64, ahead uint32) {
	if n := len(t.cells); (t.used+1)*8 > n*7 {
		t.rebuild(s, n+n/12+4, 0)
	}
	at := t.find(s, key)
	if at.ahead == 0 {
		t.used++
	}
	*at = cell{uint32(key), uint32(key >> 32), ahead}
}

// rebuild gives the table n cells or a few more, after the base has risen by so many: positions that it has reached are dropped.
func (t *table) rebuild(s seed, n int, by int64) {
	old := t.cells
	cells := slices.Grow([]cell(nil), n) // more, where the allocator rounds up
	*t = table{cells: cells[:cap(cells)]}
	clear(t.cells)
	for _, o := range old {
		if int64(o.ahead) > by {
			o.ahead -= uint32(by)
			*t.find(s, o.key()) = o
			t.used++
		}
	}
}
