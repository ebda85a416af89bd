package segment

import "hash/maphash"

// table finds a tag by name. It never changes: a writer builds a new one and
// swaps the pointer, so that readers need no lock. Tags change rarely, and a sync
// applies all its changes in one swap.
//
// It is an open-addressing hash table at most half full rather than a map: a
// look-up costs about half of a map's (BenchmarkTable), and it is most of
// what Next by name costs.
type table struct {
	slots []slot // length a power of two
	count int
}

type slot struct {
	hash uint64
	tag  *Tag
}

// hashSeed differs from process to process, so that nobody can choose colliding
// tag names. The order of slots is never visible.
var hashSeed = maphash.MakeSeed()

func newTable(tags []*Tag) *table {
	size := 8
	for size < 2*len(tags) {
		size *= 2
	}
	t := &table{slots: make([]slot, size), count: len(tags)}
	for _, tag := range tags {
		h := maphash.String(hashSeed, tag.name)
		i := h & uint64(size-1)
		for t.slots[i].tag != nil {
			i = (i + 1) & uint64(size-1)
		}
		t.slots[i] = slot{h, tag}
	}
	return t
}

// get returns the tag, nil if there is none.
func (t *table) get(name string) *Tag {
	h := maphash.String(hashSeed, name)
	mask := uint64(len(t.slots) - 1)
	for i := h & mask; ; i = (i + 1) & mask {
		s := &t.slots[i&uint64(len(t.slots)-1)]
		if s.tag == nil || s.hash == h && s.tag.name == name {
			return s.tag
		}
	}
}

// all calls f for every tag.
func (t *table) all(f func(*Tag)) {
	for i := range t.slots {
		if tag := t.slots[i].tag; tag != nil {
			f(tag)
		}
	}
}

// with returns a table that also has the tags of add and lacks those of drop. A
// tag of add replaces one of the same name.
func (t *table) with(add, drop []*Tag) *table {
	gone := make(map[string]bool, len(add)+len(drop))
	for _, tag := range drop {
		gone[tag.name] = true
	}
	for _, tag := range add {
		gone[tag.name] = true
	}
	tags := make([]*Tag, 0, t.count+len(add))
	t.all(func(tag *Tag) {
		if !gone[tag.name] {
			tags = append(tags, tag)
		}
	})
	return newTable(append(tags, add...))
}
