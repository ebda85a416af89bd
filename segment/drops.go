package segment

import "sync/atomic"

// Drops counts how often the node has dropped what it held in memory of one tag, because the numbers may be
// another's: the store went backwards, a repair came, the row was deleted, or its database belongs to another tag rule. All methods
// are safe for concurrent use.
type Drops struct{ n atomic.Int64 }

// Count returns the count. A program that takes IDs to give them out later reads it before it takes them, and again
// after each time that it has chosen one: it may give that one out if the count is the same.
func (d *Drops) Count() int64 { return d.n.Load() }

// Drops returns the count of a tag. It stays the same one while the tag is deleted and created again.
func (a *Allocator) Drops(tag string) *Drops {
	d, _ := a.drops.LoadOrStore(tag, new(Drops))
	return d.(*Drops)
}

// dropped counts that what was held of the tag is dropped. Call it last: a program that has read the new count must not
// find a chunk that can still be taken from.
func (a *Allocator) dropped(tag string) {
	if d, counted := a.drops.Load(tag); counted {
		d.(*Drops).n.Add(1)
	}
}
