package console

import (
	"cmp"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/leaf-idgen/leaf"
)

// tagsEvery is the time between two walks through the tags; a variable for tests.
var tagsEvery = 2 * time.Second

const (
	tagsShare   = 20 // a walk takes at most this part of the time
	maxTagPage  = 200
	maxOrders   = 16 // sorted lists that are kept of one walk
	maxSearch   = 256
	defaultPage = 50
)

// Tag is a line of the page of tags. 64-bit numbers are strings in JSON.
type Tag struct {
	Tag      string     `json:"tag"`
	Store    string     `json:"store,omitempty"`
	Step     int64      `json:"step"`
	Length   int64      `json:"length"`
	Was      int64      `json:"was,omitempty"` // the length before the last change; 0 if there was none while a reader was connected
	Current  leaf.Range `json:"current"`
	Position int64      `json:"position,string"`
	Used     float64    `json:"used"` // share of Current that is issued
	Next     leaf.Range `json:"next"`
	Stock    int64      `json:"stock,string"`
	Rate     *float64   `json:"rate,omitempty"`    // IDs per second; nil: not known yet
	Seconds  *float64   `json:"seconds,omitempty"` // that Stock lasts at Rate; nil: for ever, or not known
	Loading  bool       `json:"loading,omitempty"`
	LastLoad time.Time  `json:"last_load,omitzero"`
	LastUse  time.Time  `json:"last_use,omitzero"`
	Failures int        `json:"failures,omitempty"`
	Problem  string     `json:"problem,omitempty"`
	Error    string     `json:"error,omitempty"`
	Fence    int64      `json:"fence,string"`
	Cluster  int64      `json:"cluster_fence,string,omitempty"`
	Latched  bool       `json:"latched,omitempty"`
}

// TagPage is a part of the tags in use.
type TagPage struct {
	Tags    []Tag `json:"tags"`
	Found   int   `json:"found"` // that match the search
	InUse   int   `json:"in_use"`
	Latched int   `json:"latched"`
	Failing int   `json:"failing"`
	Offset  int   `json:"offset"`
}

// tagView is the last walk through the tags, which all readers share.
type tagView struct {
	sync.Mutex

	at     time.Time     // zero: none
	took   time.Duration // the walk
	all    []Tag         // never changed once it is here
	orders map[order][]int32
	rates  map[string]rate
}

// rate is what is remembered of a tag from one walk to the next.
type rate struct {
	issued, length, was int64
	perSecond           float64
	known               bool
	round               int64
}

type order struct {
	search, by string
	down       bool
}

// tagQuery asks for a page of the tags.
type tagQuery struct {
	order

	offset, limit int
}

func readTagQuery(v url.Values) (q tagQuery, err error) {
	q.search, q.by, q.down = strings.ToLower(v.Get("q")), cmp.Or(v.Get("sort"), "tag"), v.Get("dir") == "down"
	if len(q.search) > maxSearch {
		return q, leaf.BadField("q", "...", fmt.Sprintf("must have at most %d bytes", maxSearch))
	}
	if sorts[q.by] == nil {
		return q, leaf.BadField("sort", q.by, "must be a column")
	}
	if q.offset, err = number(v, "offset", 0, 1<<30); err == nil {
		q.limit, err = number(v, "limit", defaultPage, maxTagPage)
	}
	return q, err
}

func number(v url.Values, name string, otherwise, most int) (int, error) {
	text := v.Get(name)
	if text == "" {
		return otherwise, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 0 || n > most {
		return 0, leaf.BadField(name, text, fmt.Sprintf("must be 0 to %d", most))
	}
	return n, nil
}

func optional(f *float64, otherwise float64) float64 {
	if f == nil {
		return otherwise
	}
	return *f
}

const never = 1e300 // sorts behind every number of seconds

var sorts = map[string]func(a, b *Tag) int{
	"tag":     func(a, b *Tag) int { return strings.Compare(a.Tag, b.Tag) },
	"rate":    func(a, b *Tag) int { return cmp.Compare(optional(a.Rate, 0), optional(b.Rate, 0)) },
	"seconds": func(a, b *Tag) int { return cmp.Compare(optional(a.Seconds, never), optional(b.Seconds, never)) },
	"stock":   func(a, b *Tag) int { return cmp.Compare(a.Stock, b.Stock) },
	"step":    func(a, b *Tag) int { return cmp.Compare(a.Length, b.Length) },
	"load":    func(a, b *Tag) int { return a.LastLoad.Compare(b.LastLoad) },
	"state": func(a, b *Tag) int {
		rank := func(t *Tag) int {
			switch {
			case t.Latched:
				return 0
			case t.Problem != "":
				return 1
			}
			return 2
		}
		return cmp.Compare(rank(a), rank(b))
	},
}

// page returns a page of the tags in use.
func (m *Monitor) page(q tagQuery) TagPage {
	m.tags.Lock()
	defer m.tags.Unlock()
	m.walk()
	found := m.tags.order(q.order)
	p := TagPage{Tags: []Tag{}, Found: len(found), InUse: len(m.tags.all), Offset: q.offset}
	for i := range m.tags.all {
		if m.tags.all[i].Latched {
			p.Latched++
		}
		if m.tags.all[i].Problem != "" {
			p.Failing++
		}
	}
	if q.offset < len(found) {
		for _, i := range found[q.offset:min(len(found), q.offset+q.limit)] {
			p.Tags = append(p.Tags, m.tags.all[i])
		}
	}
	return p
}

// walk reads the tags again if the last walk is old enough. m.tags is locked.
func (m *Monitor) walk() {
	v, now := &m.tags, m.now()
	elapsed := now.Sub(v.at)
	first := v.at.IsZero()
	if !first && elapsed < max(tagsEvery, tagsShare*v.took) {
		return
	}
	usage := m.meter.Tags()
	v.all = make([]Tag, len(usage))
	round := now.UnixNano()
	for i, u := range usage {
		r, known := v.rates[u.Tag]
		if known && u.Issued >= r.issued {
			per := float64(u.Issued-r.issued) / elapsed.Seconds()
			if r.known { // smooth, so that a number can be read
				per = (per + r.perSecond) / 2
			}
			if per < 0.001 {
				per = 0
			}
			r.perSecond, r.known = per, true
		}
		if known && r.length != u.Length {
			r.was = r.length
		}
		r.issued, r.length, r.round = u.Issued, u.Length, round
		v.rates[u.Tag] = r
		v.all[i] = line(u, r)
	}
	if len(v.rates) > len(usage) {
		for tag, r := range v.rates {
			if r.round != round {
				delete(v.rates, tag)
			}
		}
	}
	v.at, v.orders, v.took = now, map[order][]int32{}, m.now().Sub(now)
}

func line(u Usage, r rate) Tag {
	t := Tag{
		Tag: u.Tag, Store: u.Store, Step: u.Step, Length: u.Length, Was: r.was, Current: u.Current, Position: u.Position, Next: u.Next, Stock: u.Stock,
		Loading: u.Loading, LastLoad: u.LastLoad, LastUse: u.LastUse, Failures: u.Failures, Problem: u.Problem, Error: u.Error, Fence: u.Fence, Cluster: u.Cluster, Latched: u.Latched,
	}
	if n := u.Current.Len(); n > 0 {
		t.Used = min(1, float64(u.Position-u.Current.Lo)/float64(n))
	}
	if r.known {
		t.Rate = &r.perSecond
		if r.perSecond > 0 {
			seconds := float64(u.Stock) / r.perSecond
			t.Seconds = &seconds
		}
	}
	return t
}

// order returns the places of the tags that match, sorted.
func (v *tagView) order(o order) []int32 {
	if list, ok := v.orders[o]; ok {
		return list
	}
	var list []int32
	for i := range v.all {
		if o.search == "" || strings.Contains(strings.ToLower(v.all[i].Tag), o.search) {
			list = append(list, int32(i)) //nolint:gosec // a node has far fewer than 2^31 tags
		}
	}
	by := sorts[o.by]
	slices.SortFunc(list, func(i, j int32) int {
		a, b := &v.all[i], &v.all[j]
		c := by(a, b)
		if o.down {
			c = -c
		}
		return cmp.Or(c, strings.Compare(a.Tag, b.Tag))
	})
	if len(v.orders) < maxOrders {
		v.orders[o] = list
	}
	return list
}
