package takeover

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/leaf-idgen/leaf/segment"
)

// Action is what is done to a tag.
type Action string

// Actions of a Plan.
const (
	Create  Action = "create"
	Raise   Action = "raise"
	Nothing Action = "nothing" // no number of the other service is issued any more
	Refuse  Action = "refuse"
)

// Options are the wishes of the operator.
type Options struct {
	// Gap is how many numbers are left to the other service, which goes on counting.
	Gap int64

	// Stopped says that the other service is stopped, and takes no number any more.
	Stopped bool

	// Step of new tags; 0: that of the other service, or DefaultStep.
	Step int64
}

// GoesOn reports whether the other service goes on beside Leaf.
func (o Options) GoesOn() bool { return o.Gap > 0 && !o.Stopped }

// DefaultStep is the step of a new tag where the other service has none.
const DefaultStep = 1000

// Plan is what is done to one tag, and by what it is decided.
type Plan struct {
	Comparison

	Exists   bool      `json:"exists"`
	Counters []Counter `json:"counters"`
	Action   Action    `json:"action"`
	Drop     bool      `json:"drop,omitempty"`         // every node drops what it holds from below First
	First    int64     `json:"first,string,omitempty"` // where the tag's numbers begin or go on; 0 if nothing is written
	Step     int64     `json:"step,omitempty"`         // of a new tag

	// Stop has the statements after which the other service hands out no number of the tag's.
	Stop []string `json:"stop,omitempty"`
}

// NewPlan decides what is done to a tag whose numbers the counters hand out today. It only ever
// moves a row forward. A row that is not below the counters says little: nodes issue what they hold
// in memory before they load again. It is left alone only if they hold nothing from below either.
func NewPlan(tag string, row Row, counters []Counter, o Options) Plan {
	p := Plan{Comparison: Compare(tag, row, counters), Exists: row.Exists, Counters: counters, Action: Refuse}
	if reason := cmp.Or(row.Problem, refusal(counters, o), p.used(row, o)); reason != "" {
		p.Reason = reason
		return p
	}
	// What was inserted with a number of its own counts here, and not in a comparison: the table
	// holds the tag's own numbers later.
	var margin, step int64
	for _, c := range counters {
		p.End, margin, step = max(p.End, c.Filled), max(margin, c.Margin), max(step, c.Step)
	}
	if p.End > math.MaxInt64-margin-o.Gap || p.End+margin+o.Gap > segment.MaxMaxID {
		p.Reason = fmt.Sprintf("its numbers end at %d, and with the gap the tag would begin above the largest number of a row, %d", p.End, int64(segment.MaxMaxID))
		return p
	}
	below := p.End + margin // can have been handed out
	first := below + o.Gap
	p.Step = cmp.Or(o.Step, min(step, segment.MaxStep), DefaultStep)
	switch {
	case !row.Exists:
		p.Action, p.First, p.Drop = Create, max(first, row.Ended), row.Deleted && row.Lowest < first
	case row.MaxID < below:
		p.Action, p.First, p.Drop = Raise, first, true
	case row.Lowest < below: // also where a command that raised it was interrupted
		p.Action, p.First, p.Drop = Raise, row.MaxID, true
	default:
		p.Action = Nothing
	}
	p.Stop = stops(Compare(tag, row, counters), first, counters, o)
	return p
}

// used returns why no numbers can be left to the other service beside this tag: it has had some, or may have, and those of the gap
// may be among them. A later run for a tag that an import has made is no such case.
func (p *Plan) used(row Row, o Options) string {
	if !o.GoesOn() || !row.Deleted && (p.Verdict == NoTag || p.Verdict == Apart) {
		return ""
	}
	return "--gap is for a name that never had a tag: " + cmp.Or(p.Reason, "one of this name has had numbers, and those that are left to the other service may be among them") +
		". Stop the other service, and use --stopped; or give the tag another name, with --tag TAG=NAME"
}

// stops returns the statements that keep the other service where it stands, and if it goes on, below all numbers of the tag:
// below those that the tag has, or below first, where they begin.
func stops(c Comparison, first int64, counters []Counter, o Options) (all []string) {
	end := c.End
	switch {
	case !o.GoesOn():
	case c.Verdict == Apart:
		end += c.Left
	default:
		end = first
	}
	for _, counter := range counters {
		if counter.Stop == nil {
			continue
		}
		if s := counter.Stop(end); s != "" {
			all = append(all, s)
		}
	}
	return all
}

// refusal returns why the numbers of the counters cannot be taken over.
func refusal(counters []Counter, o Options) string {
	for _, c := range counters {
		switch {
		case c.Problem != "":
			return c.Problem
		case c.Follows && o.GoesOn():
			return "AUTO_INCREMENT cannot count on beside Leaf: the first ID of Leaf that is inserted moves it above that ID, into the numbers that Leaf hands out next. Stop every program that inserts rows without an ID, and use --stopped"
		case c.Unchecked != "" && o.GoesOn():
			return "the server of the other service, version " + strconv.Quote(c.Unchecked) + ", ignores CHECK, so no statement makes that service fail at the tag's first ID: it would count on into the IDs of Leaf. Stop it, and use --stopped"
		}
	}
	if reason := missingResidues(counters); reason != "" {
		return reason + ". If there is no other one, make the tag yourself, with a start above all that you find: leaf tag create TAG --start N"
	}
	return ""
}

// missingResidues says that other databases hand out numbers between those of the counters.
func missingResidues(counters []Counter) string {
	modulus := int64(1)
	var residues []int64
	for _, c := range counters {
		if c.Modulus > 1 {
			modulus = max(modulus, c.Modulus)
		}
	}
	var found []string
	for _, c := range counters {
		found = append(found, fmt.Sprintf("remainder %d of %d", c.Residue, max(1, c.Modulus)))
		if c.Modulus == modulus && !slices.Contains(residues, c.Residue) {
			residues = append(residues, c.Residue)
		}
	}
	if modulus == 1 || int64(len(residues)) == modulus {
		return ""
	}
	return fmt.Sprintf("numbers with %s were found; those with the other remainders are in further databases, and may be higher. Name every database with --from or --from-file", strings.Join(found, ", "))
}
