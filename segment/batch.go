package segment

import "github.com/leaf-idgen/leaf"

// stockLocked returns how many IDs of a listed tag are in memory. t.mu is held; singles
// may take from the current chunk meanwhile.
func (t *Tag) stockLocked() int64 {
	c := t.cur.Load()
	n := c.end - c.position()
	if b := t.buf; b != nil {
		n += b.rest.Len() + b.next.Len() + b.after.Len()
	}
	return n
}

func (t *Tag) hasStock() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.state == listed && t.stockLocked() > 0
}

// Stocked reports whether IDs of a tag are in memory. If not, it asks for a range, for no caller in particular, as soon
// as the back-off of a failed load has passed. It returns at once, and knows nothing of a tag that is not in use yet.
func (a *Allocator) Stocked(name string) bool {
	t := a.tag(name)
	if t == nil {
		return false
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case t.state != listed:
		return false
	case t.stockLocked() > 0:
		return true
	}
	t.ask(t.buffer(), true)
	return false
}

// gather is advance for a batch that the current chunk cannot fill. While the batch wants
// more than what is in memory, it takes nothing until a load has succeeded since the call
// began or last took something. In an outage the stock so stays for the calls that it can
// serve. t.mu is held.
//
// The load for a batch may find the next range in memory: its own goes behind that one.
// If there is a third one, too, the batch makes room with what is left of the first, or
// with all of the second if that is nothing.
func (t *Tag) gather(b *buffer, w *waiter) (obstacle, error) {
	if w.proof != t {
		w.proof, w.loads = t, b.last.count
	}
	later := b.rest.Len() + b.next.Len() + b.after.Len() // changes under t.mu only
	c := t.cur.Load()
	least := max(w.wants-later, 0)
	first := c.takeBetween(least, w.wants)
	switch {
	case first.Len() >= least: // with the later ranges it is enough
	case b.last.count > w.loads:
		first = c.take(w.wants)
	case b.after.Len() > 0:
		if first, later = c.take(w.wants), b.rest.Len(); first.Len()+later == 0 {
			later = b.next.Len()
		}
	default:
		return t.block(b, w)
	}
	w.loads = b.last.count
	w.keep(first)
	if w.wants > 0 && later > 0 {
		t.takeLater(b, w, later)
	}
	if b.next.Len() == 0 && t.positionLocked() > b.whole.Lo+b.tenth() {
		t.ask(b, true)
	}
	return obstacle{}, nil
}

// takeLater takes up to most IDs behind the current chunk, which is used up, and
// publishes what follows them. t.mu is held.
func (t *Tag) takeLater(b *buffer, w *waiter, most int64) {
	for w.wants > 0 && most > 0 {
		if b.rest.Len() == 0 {
			b.turn()
		}
		n := min(w.wants, b.rest.Len(), most)
		w.keep(leaf.Range{Lo: b.rest.Lo, Hi: b.rest.Lo + n})
		b.rest.Lo += n
		most -= n
	}
	t.publish(b)
}
