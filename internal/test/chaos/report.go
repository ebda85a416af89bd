package chaos

import (
	"fmt"
	"time"

	"github.com/leaf-idgen/leaf/internal/test/echo"
)

// Report is what a run showed.
type Report struct {
	Topology string
	About    string
	Expect   string
	Repeats  bool // IDs may repeat between nodes: it is shown, and no failure
	Seed     uint64
	Began    time.Time
	Ran      time.Duration
	Versions []string // of the servers
	Enough   bool     // the run was long enough for every kind of fault
	Kinds    []Kind   // in the order of the topology, then those that are no faults
	Events   []Event  // in the order in which they came
	Requests int
	Machine  echo.Machine
	Verdict  Verdict
	Checks   []Check
	Kept     string // folder of the logs, if the run failed
}

// Kind is a kind of fault and what clients noticed of it, in all events in which it
// came alone.
type Kind struct {
	Name  string
	About string
	Fired int           // events, also those in pairs
	On    time.Duration // how long it was on, alone
	All   Share         // requests that were due while it was on
	Aimed Share         // those of them to nodes that it was aimed at
	Other Share         // those to other nodes
	Stock Share         // those of tags with stock, to nodes that ran
	// Strict is the requests for tags in strict order, to nodes that ran, and how many of them were answered within
	// strictDeadline. The numbers above leave such tags out.
	Strict Share
	// Slowest is the longest time from a heal until all clients were served.
	Slowest  time.Duration
	Outcomes map[string]int // of requests that were not answered in time
}

// Share is how many requests were answered in time.
type Share struct{ InTime, All int }

// String is a percentage that is rounded down, so that 100 % means all.
func (s Share) String() string {
	switch {
	case s.All == 0:
		return "-"
	case s.InTime == s.All:
		return "100 %"
	}
	const digits = 100
	return fmt.Sprintf("%.2f %%", float64(s.InTime*100*digits/s.All)/digits)
}

func (s *Share) count(inTime bool) {
	s.All++
	if inTime {
		s.InTime++
	}
}

// Check is one promise, kept or not.
type Check struct {
	Kept bool
	Text string
}

// check notes whether a promise was kept.
func (r *Report) check(kept bool, format string, args ...any) {
	r.Checks = append(r.Checks, Check{kept, fmt.Sprintf(format, args...)})
}

// checkUnless is check of what a busy machine can break, too: then it is shown and not judged.
func (r *Report) checkUnless(busy, kept bool, format string, args ...any) {
	if busy && !kept {
		kept, format = true, "not judged, since the machine was too busy: "+format
	}
	r.check(kept, format, args...)
}

// Failed reports whether a promise was broken.
func (r *Report) Failed() bool {
	for _, c := range r.Checks {
		if !c.Kept {
			return true
		}
	}
	return false
}

// Rows of the table of kinds that are no faults.
const (
	twoAtOnce = "two at once"
	afterHeal = "after a heal"
	noFault   = "no fault"
)
