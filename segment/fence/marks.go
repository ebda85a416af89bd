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

// reserved returns the highest end of this node's ranges of a tag. After a restart, an end that
// the previous process only heard of counts as reserved.
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

// advance raises the mark to high for a range that was just reserved. It returns ErrOvertaken
// if the mark has changed since the load began, or if this node has told a repair since then
// what it holds. Two loads of one name can overlap when the tag was deleted and created again;
// neither may undo the mark of the other.
func (f *Fence) advance(l *Load, high int64) error {
	unchanged := func(m Mark) bool { return m == l.Before && f.said[l.tag] == l.said }
	return f.change(l.tag, unchanged, Mark{High: high})
}

// Latch latches the tag in memory, whatever its mark is, and raises the alarm. seen is the
// highest end that the refused range contradicts. Settle makes the latch durable.
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

// lower sets the mark to issued, the end of the issued IDs. It returns ErrOvertaken if the mark
// is not from.
func (f *Fence) lower(tag string, from Mark, issued int64) error {
	return f.change(tag, func(m Mark) bool { return m == from }, Mark{High: issued})
}

// change sets a tag's mark to m if unchanged, which is called under mu, returns true. It returns
// when the mark is durable. After an error other than ErrOvertaken and errClosed the new mark
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

// setLocked sets a mark in memory. The caller holds f.mu.
func (f *Fence) setLocked(tag string, m Mark) {
	switch old := f.marks[tag]; {
	case m.Latched && !old.Latched:
		f.latched++
	case old.Latched && !m.Latched:
		f.latched--
	}
	f.marks[tag] = m
}

// Rebuilt returns the tags that are latched because this node lost its fence. It copies no other mark: callers ask again and again.
func (f *Fence) Rebuilt() (tags []string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.latched == 0 {
		return nil
	}
	for tag, m := range f.marks {
		if m.Rebuilt {
			tags = append(tags, tag)
		}
	}
	return tags
}

// Latched returns the number of latched tags.
func (f *Fence) Latched() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.latched
}
