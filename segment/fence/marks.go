package fence

import (
	"errors"
	"fmt"
	"maps"

	"github.com/leaf-idgen/leaf"
)

// All returns a copy of the marks.
func (f *Fence) All() map[string]Mark {
	f.mu.Lock()
	defer f.mu.Unlock()
	return maps.Clone(f.marks)
}

// Mark returns what is known of a tag; the zero Mark if nothing.
func (f *Fence) Mark(tag string) Mark {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.marks[tag]
}

// reserved returns the highest end of the ranges that this node reserved of a tag, as far
// as this process knows: after a restart, what an earlier one heard counts as reserved.
func (f *Fence) reserved(tag string) int64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	if own, heard := f.own[tag]; heard {
		return own
	}
	return f.marks[tag].ranges()
}

// ErrOvertaken means that the mark is no longer what the caller saw. Nothing was changed.
var ErrOvertaken = errors.New("fence: the tag's mark has changed meanwhile")

// advance raises the mark to high for a range that was just reserved. It is ErrOvertaken if
// the mark has changed since the load began, or if this node has said meanwhile what it
// holds. The mark changes when a load of a deleted tag ends beside one of the tag's
// successor: neither may undo what the other knows.
func (f *Fence) advance(l *Load, high int64) error {
	unchanged := func(m Mark) bool { return m == l.Before && f.said[l.tag] == l.said }
	return f.change(l.tag, unchanged, Mark{High: high})
}

// Latch latches the tag in memory, whatever happened to its mark meanwhile, and raises the
// alarm. seen is the highest end that the refused range contradicts. Settle makes the latch
// durable.
func (f *Fence) Latch(tag string, seen int64, why leaf.Alarm) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		return
	}
	f.cfg.Alarms.Raise(why)
	f.refused[tag] = f.looks
	m := Mark{High: max(f.marks[tag].High, seen), Latched: true, Unread: true}
	f.setLocked(tag, m)
	f.loose = append(f.loose, entryOf(tag, m))
}

// lower takes the mark down to what was issued. It is ErrOvertaken if the mark has changed.
func (f *Fence) lower(tag string, from Mark, issued int64) error {
	return f.change(tag, func(m Mark) bool { return m == from }, Mark{High: issued})
}

// change sets a tag's mark to m if unchanged, called under mu, allows it, and returns when
// the result is durable. After another error than ErrOvertaken and errClosed the new mark
// holds in memory, and may be on the disk or not.
func (f *Fence) change(tag string, unchanged func(Mark) bool, m Mark) error {
	f.mu.Lock()
	switch {
	case f.closed:
		f.mu.Unlock()
		return errClosed
	case !unchanged(f.marks[tag]):
		f.mu.Unlock()
		return fmt.Errorf("%w: tag %q", ErrOvertaken, tag)
	}
	f.setLocked(tag, m)
	delete(f.own, tag)
	return f.commit(entryOf(tag, m))
}

// setLocked sets a mark in memory. f.mu is held.
func (f *Fence) setLocked(tag string, m Mark) {
	switch old := f.marks[tag]; {
	case m.Latched && !old.Latched:
		f.latched++
	case old.Latched && !m.Latched:
		f.latched--
	}
	f.marks[tag] = m
}

// Latched returns the number of latched tags.
func (f *Fence) Latched() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.latched
}
