package idlog

import (
	"context"
	"runtime"
)

// Real-time order is checked on the ends of calls. Each record gives two entries of its key,
// one with the begin of its call and its first ID, one with the end and its last ID. Sorted
// by time they are one sweep: at a begin, the largest ID of the ends before it is the bound.
// This finds every violation, because IDs are in an order that real time allows exactly if no
// call has an ID that is not larger than one of a call that had ended before it began.

// An entry of a call has 2 * time as lo, + 1 for an end. So a begin comes before an end at the
// same time: such calls overlap. hi is lo plus the ID, folded so that small IDs of either sign
// are small in the temporary file.
func callEntry(key uint32, at int64, end bool, id int64) entry {
	e := entry{key: key, lo: at << 1}
	if end {
		e.lo |= 1
	}
	e.hi = int64(uint64(e.lo) + (uint64(id)<<1 ^ uint64(id>>63)))
	return e
}

func (e entry) call() (at int64, end bool, id int64) {
	folded := uint64(e.hi) - uint64(e.lo)
	return e.lo >> 1, e.lo&1 == 1, int64(folded>>1) ^ -int64(folded&1)
}

// turned is two calls in the wrong order, as far as a sweep knows them.
type turned struct {
	key          uint32
	end, last    int64 // of the call before
	begin, first int64 // of the call after
}

// turned reads the logs once more and returns the first calls that got too small an ID.
func (c *collector) turned(ctx context.Context, logs []Source) ([]turned, error) {
	if c.report.Spilled > 0 {
		runtime.GC() // the full buffers of the last sort, before those of this one are made
	}
	sw := &timeSweep{keys: c.report.Keys, list: c.List, slack: 2 * int64(c.ClockError)}
	err := c.sort(ctx, logs, &sorter{apart: true}, " times", func() error {
		return c.each(ctx, logs, func(rec Record, at Place) error { return c.addCall(rec, at, sw.slack) })
	}, sw.add)
	return sw.found, err
}

func (c *collector) addCall(rec Record, at Place, slack int64) error {
	if rec.Call == (Call{}) {
		return &SyntaxError{at, "record", shorten([]byte(rec.String())), "has no times of its call, @BEGIN-END, which the check of real-time order needs"}
	}
	no, err := c.number(rec.Key)
	if err != nil {
		return err
	}
	if err := c.add(callEntry(no, rec.Call.Begin, false, rec.Lo)); err != nil {
		return err
	}
	// No call begins beyond MaxTime. NoEnd lies there, too.
	if rec.Call.End > MaxTime-slack {
		return nil
	}
	return c.add(callEntry(no, rec.Call.End+slack, true, rec.Hi))
}

// timeSweep sees the entries of calls sorted by key and time.
type timeSweep struct {
	keys  []KeyReport // by number
	list  int
	slack int64 // between the end of a call and its entry

	no    uint32
	ended bool  // a call of the key has ended
	last  int64 // largest ID of those
	end   int64 // of its call

	found []turned // the first ones
}

func (s *timeSweep) add(e entry) error {
	if e.key != s.no {
		s.no, s.ended = e.key, false
	}
	at, end, id := e.call()
	switch {
	case end:
		if !s.ended || id > s.last {
			s.ended, s.last, s.end = true, id, at-s.slack
		}
	case s.ended:
		key := &s.keys[e.key]
		key.Later++
		if id <= s.last {
			key.Inversions++
			if len(s.found) < s.list {
				s.found = append(s.found, turned{key: e.key, end: s.end, last: s.last, begin: at, first: id})
			}
		}
	}
	return nil
}

// namedCall is what an entry says of its call.
type namedCall struct {
	key string
	at  int64
	end bool
	id  int64
}

func nameOf(key string, rec Record, end bool) namedCall {
	if end {
		return namedCall{key, rec.Call.End, true, rec.Hi}
	}
	return namedCall{key, rec.Call.Begin, false, rec.Lo}
}

// callsOf puts the findings into the report, and returns for each call which of them it is in.
func (c *collector) callsOf(all []turned) map[namedCall][]int {
	calls := map[namedCall][]int{}
	for i, f := range all {
		key := c.report.Keys[f.key].Key
		before, after := namedCall{key, f.end, true, f.last}, namedCall{key, f.begin, false, f.first}
		calls[before], calls[after] = append(calls[before], i), append(calls[after], i)
		c.report.Inversions = append(c.report.Inversions, Inversion{})
	}
	return calls
}

// found fills in one call, the first one that matches.
func (i *Inversion) found(rec Record, at Place, end bool) {
	switch {
	case end && i.BeforePlace == (Place{}):
		i.Before, i.BeforePlace = rec, at
	case !end && i.AfterPlace == (Place{}):
		i.After, i.AfterPlace = rec, at
	}
}
