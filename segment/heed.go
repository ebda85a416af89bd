package segment

import (
	"fmt"

	"github.com/leaf-idgen/leaf"
)

// heed makes this node do what a notice says, and returns what it knows of the tag
// afterwards. It is the one operation of a repair on a node: monotone, and harmless when
// it is repeated or comes late. After an error the mark may not be durable; it must be
// repeated then. Memory heeds at once, whatever the disk does: nothing that the notice
// forbids is issued while the disk hangs.
//
//   - A repair above all that this node held releases the tag. One that is not above it
//     does not know of the node's numbers, or is an old one: the latch stays.
//   - While a regress is not repaired the tag is latched, also on a node that has seen
//     nothing of it, and its stock is dropped: the store may have handed it out twice.
//     That holds for a node that latched by itself, too. Its stock is from before the loss
//     that it saw, and perhaps from after one that it did not see.
//   - Ranges in memory below the repair are dropped.
func (a *Allocator) heed(n Notice) (Mark, error) {
	after, _ := a.heedInMemory(n, ownRepair)
	return after, a.fence.settle()
}

// ownRepair is the look of the node that carries out the repair.
const ownRepair = -1

// heedInMemory is heed without the disk: settle makes it durable. look is from before the
// notice was read. If this node has carried out a repair since then, the notice is
// perhaps from before the repair and would latch the tag again: it is not heeded.
func (a *Allocator) heedInMemory(n Notice, look int) (after Mark, ok bool) {
	after, ok = a.fence.heed(n, look, regressAlarm(n.Tag, hearsay(n)))
	if !ok {
		return after, false
	}
	floor := n.Repaired
	if n.unrepaired() {
		floor = max(floor, after.High)
	}
	if floor > 0 {
		a.dropBelow(n.Tag, floor)
	}
	return after, true
}

// over returns the mark of a node that heeds n.
func (n Notice) over(m Mark) Mark {
	if n.Repaired > m.High {
		m = Mark{High: n.Repaired}
	}
	if n.unrepaired() && (!m.Latched || m.High < n.Regress) {
		m = Mark{High: max(m.High, n.Regress), Latched: true}
	}
	return m
}

// unrepaired reports whether the tag is to be stopped. A repair moves the row above
// every number that is known, so one that came after the regress is the larger number.
func (n Notice) unrepaired() bool { return n.Regress > 0 && n.Regress >= n.Repaired }

func hearsay(n Notice) string {
	return fmt.Sprintf("store went backwards; the tag is latched until repaired: another node holds numbers of tag %q up to %d and was offered less", n.Tag, n.Regress)
}

// heed sets the mark to what the notice makes of it, and begins or ends the alarm.
func (f *fence) heed(n Notice, look int, why leaf.Alarm) (after Mark, ok bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	before := f.marks[n.Tag]
	switch look {
	case f.repairs:
	case ownRepair:
		f.repairs++
	default:
		return before, false
	}
	if after = n.over(before); after == before || f.closed {
		return before, true
	}
	switch {
	case after.Latched && !before.Latched:
		f.alarms.Raise(why)
	case before.Latched && !after.Latched:
		f.alarms.Clear(leaf.AlarmRegress, n.Tag)
	}
	f.setLocked(n.Tag, after)
	f.loose = append(f.loose, entryOf(n.Tag, after))
	return after, true
}

// look returns what tells a later heed whether this node carried out a repair meanwhile.
func (f *fence) look() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.repairs
}

// settle returns when every mark that was set before is durable.
func (f *fence) settle() error {
	f.mu.Lock()
	if f.closed {
		f.mu.Unlock()
		return errClosed
	}
	if len(f.loose) == 0 && !f.broken {
		select {
		case <-f.last:
			f.mu.Unlock()
			return nil
		default:
		}
	}
	return f.commit()
}

// dropBelow drops what is in memory of the tag's ranges that start below floor, and what
// a load under way brings there.
func (a *Allocator) dropBelow(tag string, floor int64) {
	a.mu.Lock()
	tags := []*Tag{a.tag(tag), a.pending[tag]}
	a.mu.Unlock()
	for _, t := range tags {
		if t != nil {
			t.dropBelow(floor)
		}
	}
}

func (t *Tag) dropBelow(floor int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	b := t.buf
	if b == nil || b.floor >= floor {
		return
	}
	b.floor, b.prior = floor, max(b.prior, floor)
	if b.whole.Len() > 0 && b.whole.Lo < floor {
		b.prior = max(b.prior, b.whole.Hi) // some of it is issued, perhaps above floor
		lost := b.rest.Len() + t.cur.Load().shut().Len()
		t.alloc.counters.lost.Add(lost)
		t.cur.Store(t.alloc.drained)
		b.whole, b.rest = leaf.Range{}, leaf.Range{}
	}
	for range 2 {
		if b.next.Lo < floor {
			t.alloc.counters.lost.Add(b.next.Len())
			b.next, b.after = b.after, leaf.Range{}
		}
	}
	t.tryAgainLocked()
}
