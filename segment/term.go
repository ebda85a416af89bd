package segment

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/number"
	"github.com/leaf-idgen/leaf/segment/fence"
)

// Terms tells when this node may issue a tag in strict order (OrderStrict): while it owns the tag,
// alone among all nodes. Methods are safe for concurrent use and return at once.
type Terms interface {
	// Term returns the term in which this node owns the tag now. Two results are equal only within one
	// term: a node that loses a tag and gets it back has another one. The error, a leaf.ErrNotReady, says
	// who owns the tag.
	Term(tag string) (Term, error)
}

// Term is one time in which this node owns a tag.
type Term interface {
	// Valid reports whether the node owns the tag still. If so, no other node has issued a number of it
	// between the begin of the term and the moment before the call. A term that has ended never comes back.
	Valid() bool
}

// How strict order holds. A range is reserved within a term, so it lies above all that was reserved
// before the term, and it is served in that term only. A call takes its numbers first, and then asks
// whether the term is valid. If it is, no other node had begun a term when they were taken: numbers of
// earlier terms are smaller, and those of later terms larger. The other way round, the process could stand
// still between answer and number for as long as the next owner needs to issue larger ones.

// Strict reports whether the tag is in strict order, as far as this node knows.
func (a *Allocator) Strict(tag string) bool {
	t := a.tag(tag)
	if t == nil {
		return false
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.strict
}

// Rebuilt reports whether a tag in strict order waits for its repair because this node lost its fence. Only this node has latched
// the tag, so other nodes issue it.
func (a *Allocator) Rebuilt() bool {
	return slices.ContainsFunc(a.fence.Rebuilt(), a.Strict)
}

// Heard tells that the owner of a tag in strict order has issued IDs below end. Only owners have a fence of such a
// tag. So a node that took calls to the owner refuses what the owner has issued, when it is the owner itself and the
// database has lost the owner's ranges.
func (a *Allocator) Heard(tag string, end int64) {
	if t := a.tag(tag); t != nil && t.hear(end) {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if t := cmp.Or(a.tag(tag), a.pending[tag]); t != nil && t.hear(end) { // its row is back, or looked for
		return
	}
	e := a.known[tag]
	e.heard = max(e.heard, end)
	a.known[tag] = e
}

// hear is Heard for a tag. It returns false if the tag has left the table.
func (t *Tag) hear(end int64) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.state == detached {
		return false
	}
	t.known.heard = max(t.known.heard, end)
	return true
}

// say is fence.Say, raised to the end of what the node has taken to its callers from the owner of the tag: a repair must
// not move the row below it, also where the owner is gone.
func (a *Allocator) say(tag string) fence.Mark {
	m := a.fence.Say(tag)
	m.High = max(m.High, a.heardOf(tag))
	return m
}

// heardOf returns the end of what other nodes have issued of a tag, as far as this one was told.
func (a *Allocator) heardOf(tag string) int64 {
	a.mu.Lock()
	defer a.mu.Unlock()
	t := cmp.Or(a.tag(tag), a.pending[tag])
	if t == nil {
		return a.known[tag].heard
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.known.heard
}

// evidence is what a node knows of a tag's numbers although it has reserved none of them. It stays when the tag leaves the
// table: the row vanishes for a moment when an old copy of it is put in its place.
type evidence struct {
	heard int64 // the end of what other nodes have issued, as far as this one was told
	seen  int64 // the latest period that the row was in; of tags with a period
}

// end is a number below which a range contradicts the evidence.
func (e evidence) end() int64 { return max(e.seen<<number.PeriodBits, e.heard) }

// against returns what a range that starts at lo contradicts, nil if nothing. No return of unused IDs takes a row back to an
// earlier period, so a reading that showed a later one counts (rule M).
func (e evidence) against(lo int64) *fence.RegressError {
	first := e.seen << number.PeriodBits
	switch {
	case lo >= e.end():
		return nil
	case e.heard < first:
		return &fence.RegressError{Seen: first, Why: fmt.Sprintf("the row was in the period from %s before", dateOf(e.seen))}
	}
	return &fence.RegressError{Seen: e.heard, Why: fmt.Sprintf("another node has issued numbers up to %d in strict order", e.heard)}
}

// noTerms is the Terms of a node without any.
type noTerms struct{}

func (noTerms) Term(tag string) (Term, error) {
	return nil, fmt.Errorf("%w: tag %q is in strict order, and this node takes no part in it", leaf.ErrNotReady, tag)
}

// termLocked brings the stock of a tag in line with who may issue it, and returns the error for a caller of
// a tag that this node does not own. What was loaded in an earlier term, or while the tag was in plain order,
// is dropped, and what is of an earlier period. t.mu is held.
func (t *Tag) termLocked(b *buffer) error {
	term, err := t.mayLocked()
	if err != nil || term != b.term {
		t.enterLocked(b, term)
	}
	return err
}

// mayLocked returns the term in which this node may issue the tag now, nil in plain order, or why it may not. t.mu is held.
func (t *Tag) mayLocked() (term Term, err error) {
	if t.strict {
		term, err = t.alloc.cfg.Terms.Term(t.name)
	}
	if err == nil && t.options != nil && t.options.Stored().Period != "" {
		term, err = t.periodLocked(term)
	}
	return term, err
}

// enterLocked drops the stock of the term before; nil is that of a tag in plain order. t.mu is held.
func (t *Tag) enterLocked(b *buffer, term Term) {
	t.alloc.counters.lost[lossOf(b.term)].Add(t.dropStockLocked())
	if lossOf(term) == lossPeriod {
		b.last.step = 0 // a step that has grown until midnight would be too long for the night
	}
	b.term = term
}

// term returns the term in which a load may reserve a range, nil in plain order, or that this node
// does not own the tag. behind is that of the buffer, which it takes from there.
func (t *Tag) term() (term Term, owns bool, behind *int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	b := t.buffer()
	owns = t.termLocked(b) == nil
	behind, b.behind = b.behind, nil
	return b.term, owns, behind
}

// within lets the call take from ranges of the term. What it has from another one is lost.
func (w *waiter) within(term Term) {
	if w.term != term {
		w.lose(lossOf(w.term))
		w.term = term
	}
}

// above lets the call keep what it has, unless the tag was stopped or repaired since: then other nodes may have issued it.
// The call still wants as many.
func (w *waiter) above(floor int64) {
	if w.floor != floor {
		w.lose(lossRepair)
		w.floor = floor
	}
}

// lose counts what the call has as lost: it wants as much again.
func (w *waiter) lose(why lossReason) {
	var lost int64
	for _, r := range w.got {
		lost += r.Len()
	}
	w.alloc.counters.lost[why].Add(lost)
	w.wants += lost
	w.got, w.term = w.got[:0], nil
}

// done reports whether the call has what it wants, and may have it.
func (w *waiter) done() bool {
	if w.wants > 0 {
		return false
	}
	if w.term != nil && !w.term.Valid() {
		w.lose(lossOf(w.term))
		return false
	}
	return true
}
