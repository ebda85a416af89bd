package chaos

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/leaf-idgen/leaf/snowflake"
)

// fields reads snowflake IDs of the default layout.
type fields struct {
	layout        snowflake.Layout
	ahead, behind time.Duration // how far an ID's time may be from that of its arrival
}

// of returns the time and the worker ID in an ID.
func (f *fields) of(id int64) (at time.Time, worker int64, err error) {
	p, err := f.layout.Decode(id)
	return time.UnixMilli(f.layout.Millis(p.Unit)), p.Worker, err
}

// A process that issued under a worker ID, and from when to when by the times in
// its IDs.
type (
	spanKey struct {
		worker int64
		life   int
	}
	span   struct{ first, last time.Time }
	tenant struct {
		worker  int64
		process string
		span
	}
)

// turns returns where two processes have used one worker ID in turns: a successor
// starts at or above the bound of its predecessor, which issues nothing there. IDs
// may be distinct nevertheless, by luck with the sequence; this sees the fault all
// the same.
func turns(tenants []tenant) []string {
	merged := map[string]*tenant{} // several clients saw the same process
	for _, t := range tenants {
		key := fmt.Sprint(t.worker, " ", t.process)
		if m := merged[key]; m != nil {
			if t.first.Before(m.first) {
				m.first = t.first
			}
			if t.last.After(m.last) {
				m.last = t.last
			}
			continue
		}
		merged[key] = &t
	}
	all := make([]*tenant, 0, len(merged))
	for _, m := range merged {
		all = append(all, m)
	}
	slices.SortFunc(all, func(a, b *tenant) int {
		return cmp.Or(cmp.Compare(a.worker, b.worker), a.first.Compare(b.first), cmp.Compare(a.process, b.process))
	})
	var found []string
	for i := 1; i < len(all); i++ {
		before, after := all[i-1], all[i]
		if before.worker == after.worker && !after.first.After(before.last) {
			found = append(found, fmt.Sprintf("worker ID %d: %s issued until %s, %s from %s on", before.worker,
				before.process, before.last.UTC().Format(time.RFC3339Nano), after.process, after.first.UTC().Format(time.RFC3339Nano)))
		}
	}
	return found
}
