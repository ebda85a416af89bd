package sim

import (
	"bytes"
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/segment/fence"
)

// delivered is told of every range that the store handed to the engine. One that was
// handed out before shows that the database went back: what is issued later cannot be
// told apart, so nothing is checked for that tag.
func (e *segmentEngine) delivered(tag string, r leaf.Range, sure bool) {
	e.near(tag)
	if r.Lo < e.top[tag] { // else it is new
		for _, d := range e.taken[tag] {
			if both(d.ids, r).Len() > 0 {
				e.twice[tag] = true
				break
			}
		}
	}
	e.top[tag] = max(e.top[tag], r.Hi)
	e.state.handed[tag] = append(e.state.handed[tag], handing{r, e.mode.w.sched.Elapsed()})
	disk := e.node.Disk
	e.taken[tag] = append(e.taken[tag], &delivery{
		ids: r, sure: sure, known: e.known[tag], alone: e.alone, flaky: disk.Refuse > 0 || disk.Lie > 0,
	})
}

// saw is told of every answer of the cluster fence about an entry: to a load or a merge.
// What a repair learns meanwhile counts only if the entry is lower: a node gave numbers
// back. One that is older than another which was seen counts as none.
func (e *segmentEngine) saw(tag string, entry fence.Entry, ok bool) {
	switch {
	case !ok || entry.Version < e.version[tag]:
		e.known[tag] = 0
	case e.mending:
		e.known[tag] = min(e.known[tag], entry.End)
	default:
		e.known[tag] = entry.End
	}
	e.version[tag] = entry.Version
}

// moved is told of every entry that the process wrote: that for a range which it was
// handed before may be served, whatever becomes of the entry.
func (e *segmentEngine) moved(tag string, end int64) {
	for _, d := range e.taken[tag] {
		d.fenced = d.fenced || d.ids.Hi == end
	}
}

// served counts IDs that were issued against the ranges they came from.
func (e *segmentEngine) served(tag string, r leaf.Range) {
	all, left := e.taken[tag], r.Len()
	for i := len(all) - 1; i >= 0 && left > 0; i-- {
		part := both(all[i].ids, r).Len()
		if part > 0 {
			e.fenced(tag, all[i], both(all[i].ids, r))
		}
		all[i].issued += part
		left -= part
	}
	if left > 0 {
		e.mode.w.Failf("%s: %v of %q were issued, and no store handed them out to this process", e.node.Name, r, tag)
	}
}

// fenced checks rules B and C: the fences hold the end of the range that IDs are of,
// that on the disk durably at the first of them. Where it is not certain which range
// that is, they hold the IDs.
func (e *segmentEngine) fenced(tag string, d *delivery, ids leaf.Range) {
	m, r := e.mode, d.ids
	if e.twice[tag] {
		r = ids
	}
	if d.issued == 0 {
		if high := markOnDisk(e.node.Disk.Durable("fence"), tag); high < r.Hi {
			m.w.Failf("%s issues %v of %q, and its fence file says %d", e.node.Name, r, tag, high)
		}
		if m.fence != nil && !d.alone && !d.fenced && !e.twice[tag] {
			m.w.Failf("%s issues %v of %q, and never moved the cluster fence to its end", e.node.Name, r, tag)
		}
		if m.fence != nil && !d.alone && !e.state.owes && m.fence.Since(tag) < r.Hi && !e.twice[tag] {
			m.w.Failf("%s issues %v of %q, and the cluster fence, which has all its marks, holds %d", e.node.Name, r, tag, m.fence.Since(tag))
		}
		if r.Lo < d.known && !e.twice[tag] {
			m.w.Failf("%s issues %v of %q, and it had seen that the cluster fence held %d", e.node.Name, r, tag, d.known)
		}
	}
	if m.fence == nil || d.fenced || max(m.fence.Used(tag), m.fence.End(tag)) >= r.Hi {
		return
	}
	if !e.alone && (d.issued == 0 || d.alone) { // a fence that was restored may lose it later
		m.w.Failf("%s issues %v of %q, and the cluster fence never held more than %d", e.node.Name, r, tag, m.fence.Used(tag))
	}
	m.alone[tag] = max(m.alone[tag], ids.Hi)
}

// markOnDisk returns the last mark of a tag in a fence file, 0 if there is none. The
// names of the simulation's tags need no escape in JSON.
func markOnDisk(file []byte, tag string) (high int64) {
	key := []byte(`"tag":"` + tag + `","high":`)
	i := bytes.LastIndex(file, key)
	if i < 0 {
		return 0
	}
	for _, c := range file[i+len(key):] {
		if c < '0' || c > '9' {
			break
		}
		high = 10*high + int64(c-'0')
	}
	return high
}

// creates checks that a missing entry is not taken for zero (rule C): a node that holds
// numbers of a tag makes the entry by merging its own mark, or in a repair.
func (e *segmentEngine) creates(tag string, end int64) {
	if e.mending || e.alloc == nil {
		return
	}
	// A merge may have read a mark that a notice raised since. A number that a notice names is none of
	// the node's own.
	if high := e.alloc.Mark(tag).High; high > 0 && end > high && high > e.mode.tag(tag).db.Told(tag) {
		e.mode.w.sched.After(0, func() { // the engine would take a panic of its store for an error
			e.mode.w.Failf("%s makes the missing entry of %q with %d, and holds numbers up to %d", e.node.Name, tag, end, high)
		})
	}
}

func both(a, b leaf.Range) leaf.Range { return leaf.Range{Lo: max(a.Lo, b.Lo), Hi: min(a.Hi, b.Hi)} }

// mostBurnt bounds the ranges that a process reserves in vain, beside lost races: once a
// fence could not be written, the next range is reserved after it could. Seeds show up to
// 4; a node that tries again and again beside a dead fence burns hundreds. Ranges that came
// while the disk failed now and then do not count: a write before such a range says nothing
// of the write after it.
const mostBurnt = 40

// waste compares what the engine was handed with what it issued and has in stock.
// What is missing must be explained: a range as a whole by a load that failed after
// it (a fence, the disk) or lost a race, a part of one by calls for several IDs that
// failed half-way. A tag that was deleted takes its stock with it.
func (e *segmentEngine) waste() []string {
	if e.dropped {
		return nil
	}
	st := e.alloc.Status()
	stock := map[string][2]leaf.Range{}
	loading := int64(0)
	for _, t := range e.alloc.Snapshot() {
		stock[t.Tag] = [2]leaf.Range{{Lo: t.Position, Hi: t.Current.Hi}, t.Next}
		if t.Loading {
			loading++
		}
	}
	whole, flaky := int64(0), int64(0)
	var problems []string
	for _, tag := range slices.Sorted(maps.Keys(e.taken)) {
		if t := e.mode.tag(tag); e.twice[tag] || e.mode.stopped[tag] || t != nil && (t.strict || t.period != "") { // a term that ends drops its stock
			continue
		}
		left := int64(0)
		var gone []*delivery // as a whole
		for _, d := range e.taken[tag] {
			lost := d.ids.Len() - d.issued - both(d.ids, stock[tag][0]).Len() - both(d.ids, stock[tag][1]).Len()
			switch {
			case lost <= 0 || !d.sure:
			case lost == d.ids.Len() && e.failedN[tag] == 0:
				gone = append(gone, d)
			case lost < d.ids.Len():
				left += lost
			}
		}
		explained := e.failedN[tag] + e.underWay(tag)
		if left > explained {
			problems = append(problems, fmt.Sprintf("%s: %d numbers of ranges of %q that were in use vanished, calls that failed or wait explain %d", e.node.Name, left, tag, explained))
		}
		slices.SortStableFunc(gone, func(a, b *delivery) int { return cmp.Compare(a.ids.Len(), b.ids.Len()) })
		for _, d := range gone { // a call that waits may have emptied some
			if left += d.ids.Len(); left <= explained {
				continue
			}
			whole++
			if d.flaky {
				flaky++
			}
		}
	}
	if most := st.Failures + st.Races + loading; whole > most {
		problems = append(problems, fmt.Sprintf("%s: %d ranges vanished whole, %d may have (%d loads failed, %d lost a race, %d are under way)",
			e.node.Name, whole, most, st.Failures, st.Races, loading))
	}
	if whole-st.Races-flaky > mostBurnt {
		problems = append(problems, fmt.Sprintf("%s: %d ranges were reserved in vain, %d lost a race, %d came while the disk failed now and then", e.node.Name, whole, st.Races, flaky))
	}
	return problems
}

// underWay returns how many numbers calls under way may have taken: one that waits for
// another range has emptied the ranges before it.
func (e *segmentEngine) underWay(tag string) (n int64) {
	for _, c := range e.calls {
		if c.tag == tag && c.n > 1 {
			n += int64(c.n)
		}
	}
	return n
}
