package takeover

import (
	"github.com/leaf-idgen/leaf"
)

// Verdict says how the numbers of a tag and those of another service lie.
type Verdict string

// Verdicts of a Comparison.
const (
	Apart    Verdict = "apart"     // every number of the tag lies above all of the other service
	Meet     Verdict = "meet"      // some numbers can have been handed out by both
	WillMeet Verdict = "will meet" // the tag's next range begins below what the other service has handed out
	Unknown  Verdict = "unknown"   // it cannot be said, see Reason
	NoTag    Verdict = "no tag"    // there is none, and one that was deleted had no such numbers
)

// Row is what is known of a tag.
type Row struct {
	Exists  bool
	MaxID   int64
	Problem string // why the row cannot be compared or moved, "" if it can

	// Lowest is a number below which no node issues anything of the tag, 0 if that is not known, see
	// [Lowest]. Deleted says that the tag has had a row before this one: nodes may still hold IDs of it.
	Lowest  int64
	Deleted bool
	Ended   int64 // without a row: where the tag's numbers end, as all nodes and databases say; 0 if that is not known

	Issued  []leaf.Range // the numbers that can have been handed out, see [Issued]
	Unknown string       // why Issued is not known, "" if it is
}

// Comparison is a tag beside the counters of another service that hand out the same numbers.
type Comparison struct {
	Tag string `json:"tag"`
	End int64  `json:"end,string"` // every number of the other service lies below
	Row int64  `json:"row,string"` // max_id of the tag

	Verdict Verdict `json:"verdict"`
	Reason  string  `json:"reason,omitempty"`

	// Both is the lowest range of numbers that both can have handed out, and Numbers how many
	// there are in all.
	Both    leaf.Range `json:"both,omitzero"`
	Numbers int64      `json:"numbers,string,omitempty"`

	// Left is how many numbers the other service can still hand out before it meets those of
	// the tag.
	Left int64 `json:"left,string"`
}

// Compare compares a tag with the counters of another service. Numbers below the ends of the
// counters count as handed out.
func Compare(tag string, row Row, counters []Counter) Comparison {
	c := Comparison{Tag: tag, Row: row.MaxID}
	for _, counter := range counters {
		c.End = max(c.End, counter.End)
	}
	follows := false
	for _, counter := range counters {
		if counter.Problem != "" {
			return c.unknown(counter.Problem)
		}
		follows = follows || counter.Follows
	}
	switch {
	case !row.Exists && row.Problem == "" && row.Unknown == "" && len(row.Issued) == 0:
		c.Verdict = NoTag
		return c
	case follows:
		return c.unknown("AUTO_INCREMENT moves above every ID that is inserted, also above those of Leaf")
	case row.Problem != "":
		return c.unknown(row.Problem)
	case row.Unknown != "":
		return c.unknown(row.Unknown)
	}
	lowest := row.MaxID
	for _, r := range row.Issued {
		if r.Len() == 0 {
			continue
		}
		lowest = min(lowest, r.Lo)
		both := leaf.Range{Lo: r.Lo, Hi: min(r.Hi, c.End)}
		if c.Numbers += both.Len(); c.Both.Len() == 0 {
			c.Both = both
		}
	}
	if c.Numbers > 0 {
		c.Verdict = Meet
		return c
	}
	c.Both = leaf.Range{}
	missing := missingResidues(counters)
	switch {
	case row.Exists && row.MaxID < c.End:
		c.Verdict = WillMeet
	case missing != "":
		return c.unknown(missing)
	case !row.Exists:
		c.Verdict = NoTag
	default:
		c.Verdict, c.Left = Apart, lowest-c.End
	}
	return c
}

func (c Comparison) unknown(reason string) Comparison {
	c.Verdict, c.Reason = Unknown, reason
	return c
}
