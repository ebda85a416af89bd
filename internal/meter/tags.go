package meter

import (
	"cmp"
	"iter"
	"math"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/leaf-idgen/leaf/segment"
)

// Other is the name that stands for all tags that are not named. A tag with this name is always
// one of them.
const Other = "_other"

// hold is how long a tag keeps its place at least. The rate of a counter means little while
// the counter comes and goes.
const hold = 10 * time.Minute

// Tags chooses which tags metrics name, so that their number is bounded however many tags there
// are: the busiest, each for at least hold. It is safe for concurrent use.
type Tags struct {
	mu     sync.Mutex
	limit  int
	places map[string]*place
	begun  bool
	total  int64 // IDs issued of all tags at the last look
	other  int64 // IDs issued of tags while they were not named
}

// place is that of a tag that is named.
type place struct {
	since time.Time
	usage segment.Usage // at the last look
}

// NewTags returns a Tags that names at most limit tags.
func NewTags(limit int) *Tags { return &Tags{limit: limit, places: map[string]*place{}} }

// SetLimit changes how many tags are named, from the next look on.
func (t *Tags) SetLimit(limit int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.limit = limit
}

// Rest is what the tags that are not named have together.
type Rest struct {
	Tags    int
	Issued  int64   // IDs issued of tags while they were not named; never falls
	Rate    float64 // IDs per second
	Stock   int64   // IDs in memory
	Lasts   float64 // seconds for which the stock lasts of the one that runs out first
	Latched int
	Failing int // tags whose last load failed
}

// Look reads all tags once, and returns those that are named, by name, and the rest.
func (t *Tags) Look(now time.Time, all iter.Seq[segment.Usage]) (named []segment.Usage, rest Rest) {
	t.mu.Lock()
	defer t.mu.Unlock()
	before := t.total
	for _, p := range t.places {
		before -= p.usage.Issued
	}
	candidates, found := t.read(all, &rest)
	after := t.total
	for name, p := range t.places {
		if !found[name] {
			delete(t.places, name)
			continue
		}
		after -= p.usage.Issued
	}
	if t.begun {
		t.other += max(0, after-before)
	}
	t.choose(now, candidates, &rest)
	if !t.begun {
		t.begun, t.other = true, t.total
		for _, p := range t.places {
			t.other -= p.usage.Issued
		}
	}
	rest.Issued = t.other
	for _, p := range t.places {
		named = append(named, p.usage)
	}
	slices.SortFunc(named, func(x, y segment.Usage) int { return strings.Compare(x.Tag, y.Tag) })
	return named, rest
}

// read takes the usage of the tags that are named, adds up that of the others, and returns the
// busiest of these.
func (t *Tags) read(all iter.Seq[segment.Usage], rest *Rest) (candidates []segment.Usage, found map[string]bool) {
	t.total, rest.Lasts = 0, math.Inf(1)
	found = map[string]bool{}
	sorted := false // the first limit candidates are, and are the busiest before the others
	for u := range all {
		t.total += u.Issued
		if p := t.places[u.Tag]; p != nil {
			p.usage, found[u.Tag] = u, true
			continue
		}
		rest.add(u)
		if u.Tag == Other || t.limit == 0 || sorted && busier(candidates[t.limit-1], u) < 0 {
			continue
		}
		if candidates = append(candidates, u); len(candidates) > 2*t.limit {
			slices.SortFunc(candidates, busier)
			candidates, sorted = candidates[:t.limit], true
		}
	}
	slices.SortFunc(candidates, busier)
	return candidates[:min(t.limit, len(candidates))], found
}

// choose gives free places to the busiest candidates, and then the places of tags that had
// theirs for long enough to candidates that are twice as busy.
func (t *Tags) choose(now time.Time, candidates []segment.Usage, rest *Rest) {
	for len(t.places) > t.limit { // which was lowered
		quiet := t.quietest(now.Add(hold)) // of all
		delete(t.places, quiet.usage.Tag)
		rest.add(quiet.usage)
	}
	for _, c := range candidates {
		if len(t.places) >= t.limit {
			quiet := t.quietest(now)
			if quiet == nil || c.Rate <= 2*quiet.usage.Rate {
				return
			}
			delete(t.places, quiet.usage.Tag)
			rest.add(quiet.usage)
		}
		t.places[c.Tag] = &place{since: now, usage: c}
		rest.remove(c)
	}
}

// quietest returns the place that may be taken away, nil if there is none.
func (t *Tags) quietest(now time.Time) (least *place) {
	for _, p := range t.places {
		if now.Sub(p.since) >= hold && (least == nil || busier(least.usage, p.usage) < 0) {
			least = p
		}
	}
	return least
}

func busier(x, y segment.Usage) int {
	return cmp.Or(cmp.Compare(y.Rate, x.Rate), cmp.Compare(y.Issued, x.Issued), strings.Compare(x.Tag, y.Tag))
}

func (r *Rest) add(u segment.Usage) {
	r.Lasts = min(r.Lasts, u.Lasts())
	r.sum(u, 1)
}

// remove leaves Lasts as it is: for one look the scarcest tag may count twice.
func (r *Rest) remove(u segment.Usage) { r.sum(u, -1) }

func (r *Rest) sum(u segment.Usage, sign int) {
	r.Tags += sign
	r.Rate += float64(sign) * u.Rate
	r.Stock += int64(sign) * u.Stock
	if u.Latched {
		r.Latched += sign
	}
	if u.Failures > 0 {
		r.Failing += sign
	}
}
