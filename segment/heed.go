package segment

import (
	"fmt"

	"github.com/leaf-idgen/leaf"
)

// heed makes this node do what a notice says, and returns what it knows of the tag
// afterwards. It is the one operation of a repair on a node: monotone, and harmless when
// it is repeated or comes late. After an error the mark may not be durable; it must be
// repeated then.
//
//   - A repair above all that this node held releases the tag. One that is not above it
//     does not know of the node's numbers, or is an old one: the latch stays.
//   - While a regress is not repaired the tag is latched, also on a node that has seen
//     nothing of it, and the stock of such a node is dropped: the store may have handed
//     it out twice. A node that latched by itself keeps its stock, which it reserved
//     before the loss, unless another node held more than it.
//   - Ranges in memory below the repair are dropped.
func (a *Allocator) heed(n Notice) (Mark, error) {
	before := a.fence.mark(n.Tag)
	after := n.over(before)
	var err error
	if after == before {
		err = a.fence.heal()
	} else {
		after, err = a.fence.heed(n, regressAlarm(n.Tag, hearsay(n)))
	}
	floor := n.Repaired
	if after.Latched && after != before {
		floor = max(floor, after.High)
	}
	if floor > 0 {
		a.dropBelow(n.Tag, floor)
	}
	return after, err
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
func (f *fence) heed(n Notice, why leaf.Alarm) (after Mark, err error) {
	err = f.change(n.Tag, nil, func(m Mark) Mark {
		after = n.over(m)
		switch {
		case after.Latched && !m.Latched:
			f.alarms.Raise(why)
		case m.Latched && !after.Latched:
			f.alarms.Clear(leaf.AlarmRegress, n.Tag)
		}
		return after
	})
	return after, err
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
