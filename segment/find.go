package segment

import (
	"errors"
	"fmt"

	"github.com/leaf-idgen/leaf"
)

const (
	maxPending = 4096   // tags that may wait for the store's word at once
	maxMisses  = 10_000 // unknown tags that are remembered
)

// find returns the tag that name stands for. One that is not in the table gets a
// provisional tag, whose first load looks the row up; everything else (waiting,
// back-off, one load at a time) is as for any tag. It never waits.
func (a *Allocator) find(name string) (*Tag, error) {
	if t := a.tag(name); t != nil {
		return t, nil
	}
	if err := leaf.ValidateTag(name); err != nil {
		return nil, err
	}
	route := a.router.Route(name)
	if route < 0 {
		return nil, unknownTag(name)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if t := a.tag(name); t != nil {
		return t, nil
	}
	if t := a.pending[name]; t != nil {
		return t, nil
	}
	if until, ok := a.misses[name]; ok {
		if a.rt.Now().Before(until) {
			return nil, unknownTag(name)
		}
		delete(a.misses, name)
	}
	if len(a.pending) >= maxPending {
		return nil, fmt.Errorf("%w: %d unknown tags already wait for the store", leaf.ErrNotReady, len(a.pending))
	}
	t := a.newTag(a.shards[route], name, provisional)
	a.pending[name] = t
	return t, nil
}

func unknownTag(name string) error { return fmt.Errorf("%w: %q", leaf.ErrUnknownTag, name) }

// newTag returns a Tag for a name that has none. a.mu is held.
func (a *Allocator) newTag(s *shard, name string, state tagState) *Tag {
	t := &Tag{name: name, alloc: a, shard: s, state: state, known: a.known[name]}
	t.cur.Store(a.drained)
	return t
}

// follow is advance for a handle whose tag is not, or no longer, in use: it finds
// the tag that the name stands for now and shares its chunk. Storing an older chunk
// than another caller just did is harmless: a chunk is replaced only once it is
// used up or shut, so the next call comes here again.
func (t *Tag) follow(seen *chunk, w *waiter) (obstacle, error) {
	current, err := t.alloc.find(t.name)
	if err != nil {
		t.cur.Store(t.alloc.drained) // callers that are refused must not add to a used-up chunk for ever
		return obstacle{}, err
	}
	on := obstacle{}
	if c := current.cur.Load(); c == seen || c == t.alloc.drained {
		on, err = current.advance(c, w)
	}
	t.cur.Store(current.cur.Load())
	return on, err
}

// list puts a provisional tag into the table after the store has returned its row. When the
// tag is detached, or the table has another tag of this name by now, list detaches the tag
// and returns false. A detached tag never comes back: handles that still share its old
// chunks could issue from them beside the new ones.
func (a *Allocator) list(t *Tag, row Row, asked uint64) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.pending[t.name] == t {
		delete(a.pending, t.name)
	}
	other := a.tag(t.name)
	t.mu.Lock()
	defer t.mu.Unlock()
	if other != nil && other != t {
		t.state = detached
	}
	if t.state == detached {
		return false
	}
	t.state = listed
	if t.news == 0 { // else the row was seen while it was looked up, which may be the older reading
		t.describe(row, asked)
	}
	if other == nil {
		a.table.Store(a.table.Load().with([]*Tag{t}, nil))
	}
	return true
}

// unlist takes a tag out of the table, or out of pending, after the store said
// that it has no such row. It does nothing to a tag that is in neither.
func (a *Allocator) unlist(t *Tag) {
	a.mu.Lock()
	defer a.mu.Unlock()
	switch t {
	case a.pending[t.name]:
		delete(a.pending, t.name)
	case a.tag(t.name):
		a.table.Store(a.table.Load().with(nil, []*Tag{t}))
	default:
		return
	}
	if len(a.misses) >= maxMisses {
		clear(a.misses)
	}
	a.misses[t.name] = a.rt.Now().Add(a.cfg.NegativeTTL)
	t.detach()
	t.shard.noteMiss(t.name)
}

// forget drops a provisional tag for which no caller waits any more.
func (a *Allocator) forget(t *Tag) {
	a.mu.Lock()
	defer a.mu.Unlock()
	t.mu.Lock()
	defer t.mu.Unlock()
	b := t.buffer()
	if t.state != provisional || b.waiters > 0 || b.loading() {
		return
	}
	t.leaveLocked()
	if a.pending[t.name] == t {
		delete(a.pending, t.name)
	}
}

// describe copies step and options of the row into the tag. asked is the epoch in which its reading began. a.mu and t.mu are held.
func (t *Tag) describe(row Row, asked uint64) {
	t.epoch, t.asked = t.shard.epoch.Load(), asked
	if row.Problem != nil {
		t.step = 0 // unknown: the store will judge the row at the next load
		t.buffer().unread = true
		if t.buf.badRow == nil {
			t.buf.badRow = row.Problem
		}
		t.alloc.alarms.Raise(rowAlarm(t.name, row.Problem))
		return
	}
	t.news++
	if b := t.buf; b != nil {
		b.unread = false
		if b.checked != nil && *b.checked != row.MaxID { // the row may be there later
			b.checked = nil
		}
	}
	t.step = row.Step
	if CheckRow(t.name, 0, row.Step, 0) != nil {
		t.step = 0 // unknown: the store will judge it again at the next load
	}
	// Whether the numbers of a row are used up is for a load to say.
	if b := t.buf; b != nil && b.badRow != nil && !errors.Is(b.badRow, leaf.ErrOverflow) && CheckRow(t.name, row.MaxID, row.Step, 0) == nil {
		t.rowIsFineLocked(b)
		if b.exhausted {
			t.shard.retry.add(t)
		}
	}
	if strict := row.Options.Strict(); t.strict != strict {
		t.strict = strict
		t.enterLocked(t.buffer(), nil) // calls would take on from a chunk of the other order
	}
	var err error
	was := t.options
	t.options, err = was.next(row.Options)
	t.crossedLocked(err)
	t.sawLocked(was, row.MaxID)
	t.fitsLocked(row.MaxID)
}

// leaveLocked makes the tag detached. What is known of its name stays. a.mu and t.mu are held.
func (t *Tag) leaveLocked() {
	t.state = detached
	if t.known != (evidence{}) {
		t.alloc.known[t.name] = t.known
	}
}

// detach ends a tag whose row is gone, in one go with its leaving the table: a.mu is
// held. What is left of its range is not issued.
func (t *Tag) detach() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.state == detached {
		return // its handle may share the chunk of the tag's successor
	}
	t.leaveLocked()
	defer t.alloc.dropped(t.name)
	t.options = nil
	t.fitsLocked(0)
	t.misfitIsLocked(nil)
	t.cur.Load().shut()
	t.cur.Store(t.alloc.drained)
	if t.buf != nil {
		t.buf.rest, t.buf.next, t.buf.after = leaf.Range{}, leaf.Range{}, leaf.Range{}
		t.rowIsFineLocked(t.buf)
		t.crossedLocked(nil)
		t.stockedLocked(t.buf)
		t.shard.retry.drop(t)
		t.buf.wakeAll()
	}
}
