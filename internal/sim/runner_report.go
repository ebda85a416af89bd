package sim

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/leaf-idgen/leaf/internal/sim/world"
)

// What every run must have had, or it proves too little.
const (
	LeastNodes  = 3
	LeastFaults = 10 // that the nemesis began (Result.Struck)

	// LeastIDs is for runs that could issue until their end (Result.Barren).
	LeastIDs = 10_000

	// MostBarren is the share of a campaign's seeds, 1 in so many, that may be barren.
	MostBarren = 100

	// EnoughSeeds is from how many seeds on every kind of fault must have fired.
	EnoughSeeds = 1000

	// EnoughToAllow is from how many seeds on every allowed violation must have occurred.
	// The rarest ones show in one seed of about a thousand: a node whose file went back, or a
	// copied machine, must issue in the same unit as the other owner of its number.
	EnoughToAllow = 10_000
)

// Report is what a campaign showed so far.
type Report struct {
	Seeds     uint64 // that ran
	Of        uint64 // that were to run
	IDs       int64
	Began     time.Time
	Took      time.Duration // real time of the whole campaign
	Busy      time.Duration // real time of all runs
	Simulated time.Duration
	Steps     int64                // of goroutines
	Faults    map[world.Kind]Tally // that took effect
	Allowed   map[world.Kind]Tally // IDs that repeated by a fault that no node can notice
	Least     map[string]Least     // "nodes", "faults", "IDs"
	Barren    uint64               // seeds with fewer than LeastIDs that could not issue at their end
	Failures  []Result             // in the order in which they were found

	only string
}

// Tally counts over seeds.
type Tally struct {
	Seeds uint64 // in how many it happened
	Total int64
}

// Least is the smallest figure of any run, and its seed.
type Least struct {
	Value int64
	Seed  uint64
}

func newReport(c Campaign) *Report {
	return &Report{
		Of: c.Seeds, Began: time.Now(), only: c.Only,
		Faults: map[world.Kind]Tally{}, Allowed: map[world.Kind]Tally{}, Least: map[string]Least{},
	}
}

func (r *Report) add(one Result) {
	r.Seeds++
	r.Took = time.Since(r.Began)
	r.Busy += one.Took
	r.IDs += one.IDs
	r.Steps += one.Steps
	if one.Err != nil {
		r.Failures = append(r.Failures, one)
		return
	}
	r.Simulated += Storm + Calm
	for kind, n := range one.Faults {
		count(r.Faults, kind, int64(n))
	}
	for kind, n := range one.Allowed {
		if count(r.Allowed, kind, n); n == 0 {
			r.Allowed[kind] = Tally{r.Allowed[kind].Seeds, r.Allowed[kind].Total} // so that it shows
		}
	}
	r.least("nodes", int64(one.Nodes), one.Seed)
	r.least("faults", int64(one.Struck), one.Seed)
	if one.Barren && one.IDs < LeastIDs {
		r.Barren++
	} else {
		r.least("IDs", one.IDs, one.Seed)
	}
}

func count(m map[world.Kind]Tally, k world.Kind, n int64) {
	if n > 0 {
		m[k] = Tally{m[k].Seeds + 1, m[k].Total + n}
	}
}

func (r *Report) least(what string, value int64, seed uint64) {
	if l, ok := r.Least[what]; !ok || value < l.Value {
		r.Least[what] = Least{value, seed}
	}
}

// Check returns everything that is wrong: seeds that failed, runs that proved too
// little, faults that never took effect in EnoughSeeds, and allowed violations that never occur in
// EnoughToAllow.
func (r *Report) Check() error {
	var errs []error
	for _, f := range r.Failures {
		errs = append(errs, fmt.Errorf("seed %d: %w", f.Seed, f.Err))
	}
	for _, m := range []struct {
		what  string
		least int64
	}{{"nodes", LeastNodes}, {"faults", LeastFaults}, {"IDs", LeastIDs}} {
		if l, ok := r.Least[m.what]; ok && l.Value < m.least {
			errs = append(errs, fmt.Errorf("seed %d had %d %s, must be at least %d", l.Seed, l.Value, m.what, m.least))
		}
	}
	if r.Seeds >= EnoughSeeds && r.Barren*MostBarren > r.Seeds {
		errs = append(errs, fmt.Errorf("%d of %d seeds had few IDs, because every number was out of reach, must be at most 1 in %d", r.Barren, r.Seeds, MostBarren))
	}
	if r.Seeds >= EnoughSeeds {
		for _, k := range Kinds(r.only) {
			if r.Faults[k].Total == 0 {
				errs = append(errs, fmt.Errorf("the fault %q never took effect in %d seeds", k, r.Seeds))
			}
		}
	}
	if r.Seeds >= EnoughToAllow {
		for _, k := range slices.Sorted(maps.Keys(r.Allowed)) {
			if r.Allowed[k].Total == 0 {
				errs = append(errs, fmt.Errorf("the allowed violation %q never occurred in %d seeds: the documents promise too little, or the simulation cannot show it", k, r.Seeds))
			}
		}
	}
	return errors.Join(errs...)
}

// Cut reports whether seeds are missing: the campaign's context ended, or a failure
// ended the campaign.
func (r *Report) Cut() bool { return r.Seeds < r.Of }

// Rate returns seeds per second of real time.
func (r *Report) Rate() float64 { return float64(r.Seeds) / max(r.Took.Seconds(), 1e-9) }

// Print writes the report for people.
func (r *Report) Print(w io.Writer) {
	p := func(format string, args ...any) { _, _ = fmt.Fprintf(w, format+"\n", args...) }
	if r.Cut() {
		p("seeds          %d of %d, %d failed", r.Seeds, r.Of, len(r.Failures))
	} else {
		p("seeds          %d, %d failed", r.Seeds, len(r.Failures))
	}
	p("real time      %.1f s, %.1f seeds/s, %.1f ms of one core per seed", r.Took.Seconds(), r.Rate(), r.Busy.Seconds()*1000/float64(max(r.Seeds, 1)))
	p("simulated      %.1f years of a cluster", r.Simulated.Hours()/24/365)
	p("steps          %d, %.0f ns of one core each", r.Steps, float64(r.Busy.Nanoseconds())/float64(max(r.Steps, 1)))
	p("IDs            %d, all distinct but for the allowed violations below", r.IDs)
	for _, what := range []string{"nodes", "faults", "IDs"} {
		if l, ok := r.Least[what]; ok {
			p("fewest %-8s%d (seed %d)", what, l.Value, l.Seed)
		}
	}
	p("barren         %d, with few IDs, because every worker ID was out of reach", r.Barren)
	p("\n%-58s %8s %10s", "fault", "in seeds", "in all")
	for _, k := range slices.Sorted(maps.Keys(merged(r.Faults, Kinds(r.only)))) {
		p("%-58s %8d %10d", k, r.Faults[k].Seeds, r.Faults[k].Total)
	}
	p("\n%-58s %8s %10s", "IDs repeated by what no node can notice (rule L)", "in seeds", "in all")
	for _, k := range slices.Sorted(maps.Keys(r.Allowed)) {
		p("%-58s %8d %10d", k, r.Allowed[k].Seeds, r.Allowed[k].Total)
	}
	if len(r.Allowed) == 0 {
		p("none")
	}
}

// merged adds the kinds that never fired, so that they show.
func merged(m map[world.Kind]Tally, kinds []world.Kind) map[world.Kind]Tally {
	all := maps.Clone(m)
	for _, k := range kinds {
		all[k] = m[k]
	}
	return all
}

// Line returns one line of progress.
func (r *Report) Line() string {
	return strings.TrimSpace(fmt.Sprintf("%d of %d seeds, %.1f/s, %d IDs, %d kinds of faults, %d failed",
		r.Seeds, r.Of, r.Rate(), r.IDs, len(r.Faults), len(r.Failures)))
}
