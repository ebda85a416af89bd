package segment

import (
	"fmt"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/segment/fence"
)

// heed makes this node do what a notice says, and returns what it knows of the tag
// afterwards. It is the one operation of a repair on a node: monotone, and harmless when
// it is repeated or comes late. After an error the mark may not be durable; it must be
// repeated then. The node heeds a notice in memory before it writes to the disk: while the disk
// hangs, it issues nothing that the notice forbids.
//
//   - A repair above all that this node held releases the tag. One that is not above it
//     does not know of the node's numbers, or is an old one: the latch stays.
//   - What the first look after a refused range finds releases nothing: the repair may be
//     older than the loss that the range showed, and the refused statement has moved the
//     row. The node raises its mark to the repair, so that only a later one is above.
//   - While a regress is not repaired the tag is latched, also on a node that has seen
//     nothing of it, and its stock is dropped: the store may have handed it out twice.
//     That holds for a node that latched by itself, too. Its stock is from before the loss
//     that it saw, and perhaps from after one that it did not see.
//   - Ranges in memory below the repair are dropped, and what calls for several IDs have of them while they wait.
func (a *Allocator) heed(n Notice, asked fence.Look) (fence.Mark, error) {
	asked.Own = true
	after, _ := a.heedInMemory(n, asked)
	return after, a.fence.Settle()
}

// heedInMemory is heed without the disk: settle makes it durable. began is from before the
// notice was read. If this node has carried out a repair since then, the notice is
// perhaps from before the repair and would latch the tag again: it is not heeded.
func (a *Allocator) heedInMemory(n Notice, began fence.Look) (after fence.Mark, ok bool) {
	rule := func(m fence.Mark, late bool) fence.Mark { return n.over(m, began.Own, late) }
	after, ok = a.fence.Heed(n.Tag, began, rule, regressAlarm(n.Tag, hearsay(n)))
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

// heedNothing is heedInMemory for each tag that this node latched and that has no notice. The missing
// notice shows that the board has no repair of the tag from before the latch.
func (s *shard) heedNothing(posted map[string]int64, began fence.Look) {
	a := s.alloc
	if a.fence.Latched() == 0 {
		return
	}
	for tag, m := range a.fence.All() {
		if _, noticed := posted[tag]; m.Unread && !noticed && a.router.Route(tag) == s.index {
			a.heedInMemory(Notice{Tag: tag}, began)
		}
	}
}

// over returns the mark of a node that heeds n. late: a range was refused after the look
// or the repair began.
func (n Notice) over(m fence.Mark, own, late bool) fence.Mark {
	if m.Unread && !own || m.Latched && late {
		return fence.Mark{High: max(m.High, n.Repaired, n.Regress), Latched: true, Unread: m.Unread && late}
	}
	if n.Repaired > m.High {
		m = fence.Mark{High: n.Repaired}
	}
	if n.unrepaired() && (!m.Latched || m.High < n.Regress) {
		m = fence.Mark{High: max(m.High, n.Regress), Latched: true}
	}
	return m
}

// unrepaired reports whether the tag is to be stopped. A repair moves the row above
// every number that is known, so one that came after the regress is the larger number.
func (n Notice) unrepaired() bool { return n.Regress > 0 && n.Regress >= n.Repaired }

func hearsay(n Notice) string {
	return fmt.Sprintf("store went backwards; the tag is latched until repaired: another node holds numbers of tag %q up to %d and was offered less", n.Tag, n.Regress)
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
	defer t.alloc.dropped(t.name)
	b.floor, b.prior = floor, max(b.prior, floor)
	if b.whole.Len() > 0 && b.whole.Lo < floor {
		b.prior = max(b.prior, b.whole.Hi) // some of it is issued, perhaps above floor
		b.spent = t.issuedLocked()
		lost := b.rest.Len() + t.cur.Load().shut().Len()
		t.alloc.counters.lost[lossRepair].Add(lost)
		t.cur.Store(t.alloc.drained)
		b.whole, b.rest = leaf.Range{}, leaf.Range{}
	}
	for range 2 {
		if b.next.Lo < floor {
			t.alloc.counters.lost[lossRepair].Add(b.next.Len())
			b.next, b.after = b.after, leaf.Range{}
		}
	}
	t.tryAgainLocked()
}
