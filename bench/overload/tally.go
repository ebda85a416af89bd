package main

import (
	"time"

	"github.com/leaf-idgen/leaf/bench/internal/latency"
)

// tally counts what became of the requests that ended in the measured time.
type tally struct {
	asked    int64 // requests that began in the measured time
	count    [broken + 1]int64
	noHint   int64 // of those rejected
	twice    int64 // IDs that had been issued before, at any time
	admitted *latency.Histogram
	refusals *latency.Histogram // of those rejected
	most     int64              // requests under way at once, at any time
	trouble  string             // what the first broken one says, else the first failed one
}

func newTally() *tally { return &tally{admitted: latency.New(), refusals: latency.New()} }

// outcome is one request.
type outcome struct {
	reply
	took  time.Duration
	began bool // in the measured time
	ended bool // in the measured time
	twice bool // its ID had been issued before
}

func (t *tally) note(o outcome) {
	if o.twice {
		t.twice++
	}
	if o.began {
		t.asked++
	}
	if !o.ended {
		return
	}
	t.count[o.what]++
	switch o.what {
	case issued, failed, late: // not rejected
		t.admitted.Note(o.took)
	case rejected:
		t.refusals.Note(o.took)
		if o.hint <= 0 {
			t.noHint++
		}
	case broken: // has nothing to do with time
	}
	if o.text != "" && (t.trouble == "" || o.what == broken && t.count[broken] == 1) {
		t.trouble = o.text
	}
}

func (t *tally) add(other *tally) {
	if t.trouble == "" || t.count[broken] == 0 && other.count[broken] > 0 {
		t.trouble = other.trouble
	}
	for i := range t.count {
		t.count[i] += other.count[i]
	}
	t.asked += other.asked
	t.noHint += other.noHint
	t.twice += other.twice
	t.most = max(t.most, other.most)
	t.admitted.Add(other.admitted)
	t.refusals.Add(other.refusals)
}

// inVain is how many were admitted and got no ID in time.
func (t *tally) inVain() int64 { return t.count[failed] + t.count[late] }
