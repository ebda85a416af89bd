package fence

import (
	"errors"
	"fmt"

	"github.com/leaf-idgen/leaf"
)

// A degraded load may get a range below the newest entry that this node saw. Either the store
// lost commits, or a node returned unused IDs, which lowers the entry and then the row. The
// statement has moved the row, so a retry, also one of the next process, could pass the entry
// although other nodes issued the numbers above the row. Therefore the tag is a suspect: it loads
// nothing until the cluster fence answers and is compared with the row (rule A). Then it is
// latched, or the mark of its next range takes the place of this one. Where the node has no cluster
// fence any more, or a new one, which may lack the numbers above the row, the next range latches it.

// ErrSuspect means that the tag is a suspect. It says nothing about other tags.
var ErrSuspect = errors.New("the tag loads nothing until the fence answers")

// suspect stops the degraded loads of a tag, in memory at once. It returns when that is durable.
func (f *Fence) suspect(tag string) error {
	f.mu.Lock()
	m := f.marks[tag]
	if m.Suspect || f.closed {
		f.mu.Unlock()
		return nil
	}
	m.Suspect = true
	f.setLocked(tag, m)
	return f.commit(entryOf(tag, m))
}

// suspicion says why a suspect must not be loaded without the cluster fence.
func suspicion(tag string) error {
	return fmt.Errorf("%w: the store offered a range of tag %q below what the cluster fence held when it last answered; %w", leaf.ErrNotReady, tag, ErrSuspect)
}

// hasSuspects reports whether a tag is a suspect, or is latched, as a suspect is whose next range was refused: the other nodes
// may not have heard of it.
func (f *Fence) hasSuspects() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, m := range f.marks {
		if m.Suspect || m.Latched {
			return true
		}
	}
	return false
}

// isStranded reports whether no cluster fence can acquit the suspects: the node has none, or another one than the one that
// showed them.
func (c *cluster) isStranded() bool { return c == nil || c.knows().Stranded }
