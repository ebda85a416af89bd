package segment

import "container/list"

// line holds loads that have not begun, the oldest first.
//
// When the callers of the oldest one leave before its turn, the database is slower than
// what is asked of it, and the callers of the next are about to leave as well: served in
// this order, nearly every load would be done just too late. So from then on the
// newest is first, until the line is empty. A load that is asked for again meanwhile
// counts as new, or a tag with many callers would be stuck behind those with one.
//
// Loads ahead of need do not count as the oldest: no caller cancels them, so behind
// enough of them the callers of every other load would leave, and the order never turn. A caller
// that leaves one of them turns the order, too: it stays in the line, and its next callers make it new.
//
// Slow tags (queue) stay in order. They wait much longer than their callers, and each is asked
// for again every second, so with the newest first a row that is free again might get no turn.
//
// The mutex of the queue guards it. Methods that take a place leave alone what is not,
// or no longer, in this line.
type line struct {
	loads       list.List // of *queued
	newestFirst bool
	inOrder     bool // newestFirst stays false
}

// queued is a load in a line.
type queued struct {
	tag   *Tag
	ahead bool // it stays when callers leave
}

func (l *line) push(t *Tag, ahead bool) (place *list.Element) {
	if l.loads.Len() == 0 {
		l.newestFirst = false
	}
	return l.loads.PushBack(&queued{t, ahead})
}

// again notes that a caller asks once more for the load at place.
func (l *line) again(place *list.Element, ahead bool) {
	q := place.Value.(*queued)
	q.ahead = q.ahead || ahead
	if l.newestFirst {
		l.loads.MoveToBack(place)
	}
}

// drop takes out the load at place, whose callers have left, and reports whether it was
// there.
func (l *line) drop(place *list.Element) bool {
	l.left(place)
	before := l.loads.Len()
	l.loads.Remove(place)
	return l.loads.Len() < before
}

// left notes that callers of the load at place have left before its turn.
func (l *line) left(place *list.Element) {
	if l.newestFirst || l.inOrder {
		return
	}
	first := place
	for older := place.Prev(); older != nil && older.Value.(*queued).ahead; older = older.Prev() {
		first = older
	}
	l.newestFirst = first == l.loads.Front()
}

// pop takes out the load whose turn it is, or the oldest, nil if there is none.
func (l *line) pop(oldest bool) *Tag {
	next := l.loads.Front()
	if l.newestFirst && !oldest {
		next = l.loads.Back()
	}
	if next == nil {
		return nil
	}
	return l.loads.Remove(next).(*queued).tag
}
