package segment

import "maps"

// table finds a tag by name. It never changes: a writer builds a new one and
// swaps the pointer, so that readers need no lock. Tags change rarely, and a sync
// applies all its changes in one swap.
type table map[string]*Tag

// with returns a table that also has the tags of add and lacks those of drop. A
// tag of add replaces one of the same name.
func (t table) with(add, drop []*Tag) *table {
	out := make(table, len(t)+len(add))
	maps.Copy(out, t)
	for _, tag := range drop {
		delete(out, tag.name)
	}
	for _, tag := range add {
		out[tag.name] = tag
	}
	return &out
}

// tag returns the tag in the table, nil if there is none.
func (a *Allocator) tag(name string) *Tag { return (*a.table.Load())[name] }
