package segment

import (
	"maps"
	"slices"
)

// say returns the mark for a repair that asks what this node holds of a tag. The repair does
// not know of a range whose reply is still on its way, and the database may have forgotten
// it: advance refuses that range.
func (f *fence) say(tag string) Mark {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.said[tag]++
	return f.knownLocked(tag)
}

// known is say for a caller that tells nobody.
func (f *fence) known(tag string) Mark {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.knownLocked(tag)
}

// knownLocked returns the mark, with the end of a tail whose return may still reach the
// database: a repair moves the row above that end, so the statement never meets a row that
// has come to the same end again. f.mu is held.
func (f *fence) knownLocked(tag string) Mark {
	m := f.marks[tag]
	m.High = max(m.High, f.returning[tag])
	return m
}

// returns notes that the return of a tail that ends at hi may reach the database from now
// on.
func (f *fence) returns(tag string, hi int64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.returning[tag] = hi
}

// hasReturned notes that the return of a tail has ended: it never reaches the database
// later.
func (f *fence) hasReturned(tag string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.returning, tag)
}

// onTheirWay returns the tags of tails whose return may still reach the database.
func (f *fence) onTheirWay() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Sorted(maps.Keys(f.returning))
}

// loadStart is what a load finds when it begins.
type loadStart struct {
	Mark

	said int // how often this node had said what it holds
}

// begin returns what is known of a tag when a load begins.
func (f *fence) begin(tag string) loadStart {
	f.mu.Lock()
	defer f.mu.Unlock()
	return loadStart{f.marks[tag], f.said[tag]}
}
