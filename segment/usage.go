package segment

import (
	"cmp"
	"iter"
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

// failedLocked returns how many loads have failed in a row, and the last error, as long as its cause lasts: the node tries
// again, or waits for an operator or for its clock. What has failed of a tag that another node issues now, or that was
// repaired, would else be told until a caller comes. t.mu is held.
func (t *Tag) failedLocked() (inARow int, last error) {
	b := t.buf
	if b.failures > 0 && (b.badRow != nil || t.misfit != "" || t.shard.retry.has(t) || t.alloc.fence.Mark(t.name).Latched) {
		return b.failures, b.failed
	}
	return 0, nil
}

// Lasts returns for how many seconds the tag's stock lasts at its rate. Without IDs in memory
// it is 0, and with IDs of which none are taken it is infinite.
func (s TagStatus) Lasts() float64 { return lasts(s.Stock, s.Rate) }

func lasts(stock int64, rate float64) float64 {
	switch {
	case stock <= 0:
		return 0
	case rate <= 0:
		return math.Inf(1)
	}
	return float64(stock) / rate
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

// Usage is how much is left of a tag that is in use. [TagStatus] says more of fewer tags.
type Usage struct {
	Tag      string
	Issued   int64   // IDs taken in this process; falls when the tag was deleted and created again
	Rate     float64 // IDs per second over the last one to two sync intervals
	Length   int64   // IDs in the last range
	Stock    int64   // IDs in memory
	Failures int     // loads that failed in a row, as TagStatus.Failures
	Latched  bool
}

// Lasts is that of TagStatus.
func (u Usage) Lasts() float64 { return lasts(u.Stock, u.Rate) }

// Usages returns the tags that were used since New, in no order. It looks at each tag under the
// tag's own lock, and is made for 100,000 of them.
func (a *Allocator) Usages() iter.Seq[Usage] {
	return func(yield func(Usage) bool) {
		now, latched := a.rt.Now(), a.fence.Latched() > 0
		for _, t := range *a.table.Load() {
			u, used := t.usage(now)
			if !used {
				continue
			}
			u.Latched = latched && a.fence.Mark(t.name).Latched
			if !yield(u) {
				return
			}
		}
	}
}

func (t *Tag) usage(now time.Time) (u Usage, used bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	b := t.buf
	if b == nil {
		return Usage{}, false
	}
	failures, _ := t.failedLocked()
	return Usage{Tag: t.name, Issued: t.issuedLocked(), Rate: t.rateLocked(now), Length: b.last.length, Stock: t.stockLocked(), Failures: failures}, true
}
