package segment

import "container/list"

// line holds loads that have not begun, the oldest first.
//
// When the callers of the oldest one leave before its turn, the database is slower than
// what is asked of it, and the callers of the next are about to leave as well: served in
// this order, nearly every load would be done just too late. So from then on the
// newest is first, until the line is empty. A load that somebody asks for again meanwhile
// counts as new, or a tag with many callers would be stuck behind those with one.
//
// The mutex of the queue guards it. Methods that take a place leave alone what is not,
// or no longer, in this line.
type line struct {
	loads       list.List // of *Tag
	newestFirst bool
}

func (l *line) push(t *Tag) (place *list.Element) {
	if l.loads.Len() == 0 {
		l.newestFirst = false
	}
	return l.loads.PushBack(t)
}

// again notes that somebody asks once more for the load at place.
func (l *line) again(place *list.Element) {
	if l.newestFirst {
		l.loads.MoveToBack(place)
	}
}

// drop takes out the load at place, whose callers have left, and reports whether it was
// there.
func (l *line) drop(place *list.Element) bool {
	before := l.loads.Len()
	l.newestFirst = l.newestFirst || place == l.loads.Front()
	l.loads.Remove(place)
	return l.loads.Len() < before
}

// pop takes out the load whose turn it is, nil if there is none.
func (l *line) pop() *Tag {
	next := l.loads.Front()
	if l.newestFirst {
		next = l.loads.Back()
	}
	if next == nil {
		return nil
	}
	return l.loads.Remove(next).(*Tag)
}
