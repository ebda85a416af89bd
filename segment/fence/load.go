package fence

import (
	"context"
	"errors"
	"fmt"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/internal/bounded"
)

// ErrLatched means that the tag is latched, so nothing may be reserved.
var ErrLatched = errors.New("fence: the tag is latched")

// RegressError says that a range lies below numbers which were reserved before: the store
// went backwards (rule A).
type RegressError struct {
	Seen int64  // the highest end that is known
	Why  string // what the range contradicts
}

func (e *RegressError) Error() string { return e.Why }

// blocked is the error of a load that is not the fault of the tag's store.
type blocked struct{ error }

func (e *blocked) Unwrap() error { return e.error }

// Blocked marks an error of a load that is not the fault of the tag's store.
func Blocked(err error) error { return &blocked{err} }

// IsBlocked reports whether err was marked so.
func IsBlocked(err error) bool {
	_, ok := errors.AsType[*blocked](err)
	return ok
}

// Held is an entry of the cluster fence together with its incarnation; the zero
// Held is none.
type Held struct {
	space string
	Entry

	over Entry // the entry that Admit replaced by this one
}

// Follows reports whether no node has written the tag's entry between before and h, which Admit
// returned for two ranges of this node, or whether neither range has an entry. If a node has, it may
// hold numbers below the entry that it took without the cluster fence (see merge).
func (h Held) Follows(before Held) bool { return h.space == before.space && h.over == before.Entry }

// Load is one load of a tag: from before its range is reserved until the range is admitted
// or dropped. It is for one goroutine.
type Load struct {
	Before Mark // of the tag when the load began

	fence *Fence
	tag   string
	said  int // how often this node had said what it holds

	// What it learned of the cluster fence before the range was reserved.
	space  string
	merges int            // how many merges had begun
	old    *Entry         // the tag's entry, nil if it has none
	last   int64          // degraded: the end of the newest entry that this process saw
	outage *bounded.Group // degraded: counts this load until End; nil: not degraded
}

// Begin begins a load: nothing is reserved unless the mark of the range could be written,
// and unless the cluster fence was read before (rule C). While the cluster fence is in doubt,
// Begin waits. The caller calls End when the range is admitted or dropped. Errors: ErrLatched;
// all others are Blocked.
func (f *Fence) Begin(ctx context.Context, tag string) (*Load, error) {
	l := f.newLoad(tag)
	if l.Before.Latched {
		return nil, ErrLatched
	}
	if err := f.heal(); err != nil {
		return nil, Blocked(err)
	}
	if f.cluster == nil {
		return l, nil
	}
	err := f.cluster.enter(f.running, l)
	if err == nil && l.outage == nil {
		err = f.cluster.look(ctx, l)
	}
	if err != nil {
		return nil, Blocked(err)
	}
	return l, nil
}

func (f *Fence) newLoad(tag string) *Load {
	f.mu.Lock()
	defer f.mu.Unlock()
	return &Load{fence: f, tag: tag, Before: f.marks[tag], said: f.said[tag]}
}

// End ends the load.
func (l *Load) End() {
	if l.outage != nil {
		l.outage.End()
	}
}

// Admit decides whether a range that was just reserved may be served. Before it returns
// nil, both fences hold the range's end (rule B). After any error the range is dropped.
// Errors: *RegressError; ErrMoved if another node was faster, which is no fault;
// ErrOvertaken; all others are Blocked, and whether a fence has moved is unknown.
func (l *Load) Admit(ctx context.Context, r leaf.Range) (Held, error) {
	if r.Lo < l.Before.High {
		return Held{}, &RegressError{l.Before.High, fmt.Sprintf("this node holds numbers up to %d", l.Before.High)}
	}
	if l.Before.Suspect && l.fence.cluster.isStranded() {
		// Up to r.Lo: the other nodes hear of no end at 0, and this node may have reserved nothing of the tag.
		return Held{}, &RegressError{max(r.Lo, 1), "in an outage of the cluster fence that this node had then, the store offered a range below what that fence held"}
	}
	held, err := l.pass(ctx, r)
	if err != nil {
		return Held{}, err
	}
	if l.outage != nil {
		l.fence.cluster.takenApart(l.tag)
	}
	switch err := l.fence.advance(l, r.Hi); {
	case errors.Is(err, ErrOvertaken):
		return Held{}, err
	case err != nil:
		return Held{}, Blocked(err)
	}
	if err := l.recheck(); err != nil {
		return Held{}, err
	}
	return held, nil
}

// pass moves the tag's entry to the end of the range. From then on every node refuses a range
// below that end.
//
// A range below the entry is a regress only if the entry is still the one that Begin read.
// Otherwise a node may have returned unused IDs in between, which lowers the entry first and
// the row afterwards. A Swap of the entry to its own end tells which.
func (l *Load) pass(ctx context.Context, r leaf.Range) (Held, error) {
	c := l.fence.cluster
	switch {
	case c == nil:
		return Held{}, nil
	case l.outage != nil:
		if r.Lo < l.last {
			return Held{}, Blocked(errors.Join(suspicion(l.tag), l.fence.suspect(l.tag)))
		}
		return Held{}, nil
	}
	below := l.old != nil && r.Lo < l.old.End
	end := r.Hi
	if below {
		end = l.old.End
	}
	e, err := c.swap(ctx, l.space, l.tag, l.old, end)
	switch {
	case errors.Is(err, ErrMoved):
		return Held{}, err
	case err != nil:
		return Held{}, Blocked(err)
	}
	if below {
		return Held{}, &RegressError{max(l.Before.High, l.old.End), fmt.Sprintf("the cluster fence holds numbers up to %d", l.old.End)}
	}
	held := Held{space: l.space, Entry: e}
	if l.old != nil {
		held.over = *l.old
	}
	return held, nil
}

// recheck returns an error if a merge has begun since the load read the fence. A merge that
// begins later reads the mark of this load, which is set.
func (l *Load) recheck() error {
	c := l.fence.cluster
	if c == nil || l.outage != nil {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.merges == l.merges {
		return nil
	}
	return Blocked(fmt.Errorf("%w: this node has merged its fences into cluster fence %q meanwhile", leaf.ErrNotReady, c.name))
}
