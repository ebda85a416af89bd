package sim

import (
	"fmt"
	"math/bits"
	"slices"
	"time"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/internal/sim/world"
)

// Series is a set of IDs in which none may repeat: a tag of segment mode, an entity of a sequence, or all of
// snowflake mode.
type Series struct {
	Mode   string // "segment" or "snowflake"
	Tag    string // of an entity: the row of its section
	Entity string // "": the numbers are of the tag itself
}

func (s Series) String() string {
	if s.Entity != "" {
		return fmt.Sprintf("%s %q entity %q", s.Mode, s.Tag, s.Entity)
	}
	return fmt.Sprintf("%s %q", s.Mode, s.Tag)
}

// issue is one range of IDs that a caller got.
type issue struct {
	ids  leaf.Range
	node *Node
	life int
	at   time.Duration // when it got them
}

// AllowedViolation says that IDs of a series may repeat between two nodes (or two lives of one),
// because a fault struck that no node can notice (rule L).
type AllowedViolation struct {
	Kind   world.Kind
	Mode   string
	Covers func(a, b *Node, s Series, id int64) bool // whether this ID may have been issued by both
}

func (e *AllowedViolation) fits(before, now issue, s Series, id int64) bool {
	return e.Mode == s.Mode && e.Covers(before.node, now.node, s, id)
}

// ledger knows every ID that was issued, and where.
type ledger struct {
	issued  map[Series]*issues
	allowed []AllowedViolation
	count   int64
	repeats map[world.Kind]int64 // repeated IDs by kind of fault
}

// issues are those of one series: a bit per ID, and which node issued it, for the text of a failure.
type issues struct {
	pages map[int64]*[64]uint64 // by ID / 4096
	all   []issue
}

func newLedger() *ledger {
	return &ledger{issued: map[Series]*issues{}, repeats: map[world.Kind]int64{}}
}

// add records IDs, in the order in which their caller got them.
func (l *ledger) add(s Series, by issue) error {
	is := l.issued[s]
	if is == nil {
		is = &issues{pages: map[int64]*[64]uint64{}}
		l.issued[s] = is
	}
	l.count += by.ids.Len()
	for id := by.ids.Lo; id < by.ids.Hi; { // a word of the bitmap at a time
		page := is.pages[id>>12]
		if page == nil {
			page = new([64]uint64)
			is.pages[id>>12] = page
		}
		next := min(by.ids.Hi-1, id|63) + 1
		word, mask := &page[id>>6&63], ^uint64(0)>>(64-(next-id))<<(id&63)
		for again := *word & mask; again != 0; again &= again - 1 {
			if err := l.repeated(s, is, id&^63+int64(bits.TrailingZeros64(again)), by); err != nil {
				return err
			}
		}
		*word |= mask
		id = next
	}
	is.all = append(is.all, by)
	return nil
}

// repeated looks for an allowed violation: one for every time that the ID was issued before.
func (l *ledger) repeated(s Series, is *issues, id int64, by issue) error {
	kind := world.Kind("")
	for _, before := range is.all {
		if before.ids.Lo > id || id >= before.ids.Hi {
			continue
		}
		i := slices.IndexFunc(l.allowed, func(e AllowedViolation) bool { return e.fits(before, by, s, id) })
		if i < 0 {
			return fmt.Errorf("%v: ID %d was issued by %s life %d in %v and again by %s life %d in %v",
				s, id, before.node.Name, before.life, before.ids, by.node.Name, by.life, by.ids)
		}
		kind = l.allowed[i].Kind
	}
	if kind == "" {
		return fmt.Errorf("%v: ID %d twice within %v, issued by %s life %d", s, id, by.ids, by.node.Name, by.life)
	}
	l.repeats[kind]++
	return nil
}

// inTables returns the largest ID of several series that was issued up to a moment, and when that was, and how many were issued
// since that moment.
func (l *ledger) inTables(all []Series, upTo time.Duration) (id int64, at time.Duration, later int64) {
	for _, s := range all {
		is := l.issued[s]
		if is == nil {
			continue
		}
		for _, i := range is.all {
			switch {
			case i.at > upTo:
				later += i.ids.Len()
			case i.ids.Hi-1 > id:
				id, at = i.ids.Hi-1, i.at
			}
		}
	}
	return id, at, later
}
