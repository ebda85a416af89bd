package cache

import (
	"maps"
	"slices"
	"sync"
	"sync/atomic"
)

// index finds a tag by its name. A reader looks into a map that never changes, without
// a lock. New tags are gathered in a second map, which replaces the first after as many
// misses as it has entries, so that adding n tags copies O(n) of them in all.
type index struct {
	most   int
	frozen atomic.Pointer[map[string]*Tag]

	mu      sync.Mutex
	current map[string]*Tag // all tags
	misses  int             // of frozen since it was made
}

func (x *index) init(most int) {
	x.most = most
	x.current = map[string]*Tag{}
	x.frozen.Store(&map[string]*Tag{})
}

// get returns nil if the tag is not there yet.
func (x *index) get(name string) *Tag {
	if t := (*x.frozen.Load())[name]; t != nil {
		return t
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	t := x.current[name]
	if t != nil {
		if x.misses++; x.misses >= len(x.current) {
			frozen := maps.Clone(x.current)
			x.frozen.Store(&frozen)
			x.misses = 0
		}
	}
	return t
}

// add returns the tag, made by create if it is new, or nil if there is no room or create
// makes none.
func (x *index) add(name string, create func() *Tag) *Tag {
	x.mu.Lock()
	defer x.mu.Unlock()
	t := x.current[name]
	if t == nil && len(x.current) < x.most {
		if t = create(); t != nil {
			x.current[name] = t
		}
	}
	return t
}

// drop forgets a tag that turned out to be unknown to the source. A caller that has the
// tag already goes on with it.
func (x *index) drop(t *Tag) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.current[t.name] != t {
		return
	}
	delete(x.current, t.name)
	if (*x.frozen.Load())[t.name] == t {
		frozen := maps.Clone(x.current)
		x.frozen.Store(&frozen)
		x.misses = 0
	}
}

// all returns the tags in the order of their names.
func (x *index) all() []*Tag {
	x.mu.Lock()
	defer x.mu.Unlock()
	tags := make([]*Tag, 0, len(x.current))
	for _, name := range slices.Sorted(maps.Keys(x.current)) {
		tags = append(tags, x.current[name])
	}
	return tags
}
