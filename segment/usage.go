package segment

import (
	"cmp"
	"math"
	"slices"
	"strings"
	"time"
)

// look is how many IDs a tag had issued at a moment.
type look struct {
	at     time.Time
	issued int64
}

// issuedLocked returns how many IDs the tag has issued since New. t.mu is held. IDs that a
// batch skipped count, too: the number is for rates, and proves nothing.
func (t *Tag) issuedLocked() int64 {
	b := t.buf
	if b == nil {
		return 0
	}
	if b.whole.Len() == 0 {
		return b.spent
	}
	return b.spent + t.positionLocked() - b.whole.Lo
}

// rateLocked returns the IDs per second since the look before the last one, or since the first
// use if there is none. t.mu is held.
func (t *Tag) rateLocked(now time.Time) float64 {
	since := t.buf.looks[1]
	if since.at.IsZero() {
		since = t.buf.looks[0]
	}
	span := max(now.Sub(since.at), time.Second) // the first calls of a tag are no rate yet
	return float64(t.issuedLocked()-since.issued) / span.Seconds()
}

// Lasts returns for how many seconds the tag's stock lasts at its rate. Without IDs in memory
// it is 0, and with IDs of which none are taken it is infinite.
func (s TagStatus) Lasts() float64 {
	switch {
	case s.Stock <= 0:
		return 0
	case s.Rate <= 0:
		return math.Inf(1)
	}
	return float64(s.Stock) / s.Rate
}

// Scarcest returns the tags whose stock lasts for the shortest time, at most limit, and how
// many tags were used since New. It keeps no more than about two times limit in memory.
func (a *Allocator) Scarcest(limit int) (tags []TagStatus, used int) {
	shorter := func(x, y TagStatus) int {
		return cmp.Or(cmp.Compare(x.Lasts(), y.Lasts()), strings.Compare(x.Tag, y.Tag))
	}
	for _, t := range *a.table.Load() {
		st, inUse := t.status()
		if !inUse {
			continue
		}
		used++
		if tags = append(tags, st); len(tags) > 2*limit {
			slices.SortFunc(tags, shorter)
			tags = tags[:limit]
		}
	}
	slices.SortFunc(tags, shorter)
	return tags[:min(limit, len(tags))], used
}
