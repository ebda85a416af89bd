package takeover_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/internal/audit"
	"github.com/leaf-idgen/leaf/internal/takeover"
)

func entry(operation, from, to string) audit.Entry {
	return audit.Entry{Operation: operation, From: from, To: to, Result: audit.Done}
}

func TestIssuedIsNotKnown(t *testing.T) {
	create := entry("tag create", "", `{"tag":"order","start":"5","step":1000}`)
	for name, entries := range map[string][]audit.Entry{
		"no entry":               nil,
		"only other fields":      {entry("tag set", `{"step":1}`, `{"step":2}`)},
		"a row of another":       {entry("tag set", `{"max_id":"7"}`, `{"max_id":"90"}`)},
		"a cut text":             {entry("tag create", "", `{"tag":"order","sta`)},
		"a refused create":       {{Operation: "tag create", To: `{"start":"5"}`, Result: "conflict"}},
		"a move from nowhere":    {create, entry("tag set", "", `{"max_id":"90"}`)},
		"a repair without first": {create, entry("tag repair", `{"max_id":"7"}`, `{"above":"0"}`)},
		"a repair without a row": {create, entry("tag repair", ``, `{"above":"9","first":"10"}`)},
	} {
		slices.Reverse(entries)
		if got, known := takeover.Issued(entries, 100); known || got != nil {
			t.Errorf("%s: got %v, %v; want that it is not known", name, got, known)
		}
	}
	if got, known := takeover.Issued([]audit.Entry{{Operation: "tag set", To: `{"max_id":"90"}`, Result: "conflict"}, create}, 100); !known || len(got) != 1 || got[0] != (leaf.Range{Lo: 5, Hi: 100}) {
		t.Errorf("a refused move: got %v, %v; want [5, 100)", got, known)
	}
}

// TestIssuedFollowsTheRow lets a row move by commands and by loads, and compares what was handed
// out with what the entries of the commands tell.
func TestIssuedFollowsTheRow(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		var entries []audit.Entry
		var out []leaf.Range
		there, row, began := false, int64(0), int64(0)
		add := func(operation, from, to string) { entries = slices.Insert(entries, 0, entry(operation, from, to)) }
		for range 1 + r.IntN(12) {
			was, jump := row, r.Int64N(50)
			switch n := r.IntN(6); {
			case !there:
				row, there = row+jump, true
				began = row
				add("tag create", "", fmt.Sprintf(`{"tag":"order","start":"%d","step":10}`, row))
			case n == 0:
				row += jump
				began = row
				add("tag set", fmt.Sprintf(`{"max_id":"%d"}`, was), fmt.Sprintf(`{"max_id":"%d"}`, row))
			case n == 1:
				back := was // or the database has lost loads, and the row says too little
				if r.IntN(2) == 0 {
					back = began + r.Int64N(was-began+1)
				}
				row += jump + 1
				add("tag repair", fmt.Sprintf(`{"max_id":"%d"}`, back), fmt.Sprintf(`{"above":"%d","first":"%d","max_id":"%d"}`, row-1, row, row))
				out, began = leaf.AppendRange(out, leaf.Range{Lo: was, Hi: row}), row // what a repair ends can have been handed out
			case n == 2:
				there = false
				add("tag delete", fmt.Sprintf(`{"max_id":"%d","step":10}`, was), "")
			default:
				row += jump
				out = leaf.AppendRange(out, leaf.Range{Lo: was, Hi: row})
			}
		}
		maxID := row
		if !there { // as a reader of a row that is gone has it
			maxID = -1
		}
		if got, known := takeover.Issued(entries, maxID); !known || !slices.Equal(got, out) {
			t.Fatalf("entries %+v: got %v, %v; handed out was %v", entries, got, known, out)
		}
	}
}

// TestIssuedBesideALostDelete: a row was deleted with SQL, or by a node whose clock is ahead, and the
// tag was created again. What it handed out before is not forgotten.
func TestIssuedBesideALostDelete(t *testing.T) {
	first, again := entry("tag create", "", `{"start":"5"}`), entry("tag create", "", `{"start":"100"}`)
	gone := entry("tag delete", `{"max_id":"90"}`, "")
	for name, newest := range map[string][]audit.Entry{
		"with SQL":           {again, first},
		"by a clock ahead":   {gone, again, first},
		"in the right order": {again, gone, first},
	} {
		got, known := takeover.Issued(newest, 130)
		both := func(id int64) bool {
			return slices.ContainsFunc(got, func(r leaf.Range) bool { return r.Lo <= id && id < r.Hi })
		}
		if !known || !both(5) || !both(89) || !both(100) || !both(129) || both(4) || both(130) {
			t.Errorf("%s: got %v, %v; want 5 to 89 and 100 to 129 in it, and nothing beyond", name, got, known)
		}
	}
}

// TestIssuedByARowThatIsGone: no command has deleted the row, so where its numbers ended is not known.
func TestIssuedByARowThatIsGone(t *testing.T) {
	create := entry("tag create", "", `{"start":"5"}`)
	if got, known := takeover.Issued([]audit.Entry{create}, -1); known {
		t.Errorf("got %v; want that it is not known", got)
	}
}

// TestLowest: nodes issue what they hold in memory, also after a command has raised the row, and also
// where it was deleted and made anew. Only a repair makes them drop it.
func TestLowest(t *testing.T) {
	create, set := entry("tag create", "", `{"start":"5"}`), entry("tag set", `{"max_id":"7"}`, `{"max_id":"90"}`)
	repair, step := entry("tag repair", `{"max_id":"90"}`, `{"above":"94","first":"97"}`), entry("tag set", `{"step":1}`, `{"step":2}`)
	gone, higher := entry("tag delete", `{"max_id":"90"}`, ""), entry("tag create", "", `{"start":"100"}`)
	deaf := entry("tag repair", `{"max_id":"90"}`, `{"above":"94","first":"97","untold":"b"}`)
	refused := repair
	refused.Result = "unavailable"
	for name, tt := range map[string]struct {
		newest []audit.Entry
		want   int64
	}{
		"none":                      {nil, 0},
		"created":                   {[]audit.Entry{step, create}, 5},
		"raised":                    {[]audit.Entry{set, create}, 5},
		"raised by nobody":          {[]audit.Entry{set}, 0},
		"repair was refused":        {[]audit.Entry{step, refused, set, create}, 5},
		"repaired":                  {[]audit.Entry{step, repair, set, create}, 95},
		"repaired beside a node":    {[]audit.Entry{step, deaf, set, create}, 5},
		"repaired beside it alone":  {[]audit.Entry{deaf, set}, 0},
		"repaired before":           {[]audit.Entry{set, repair, set}, 95},
		"made anew":                 {[]audit.Entry{higher, gone, create}, 5},
		"made anew after repair":    {[]audit.Entry{higher, gone, repair, create}, 95},
		"made anew long after":      {[]audit.Entry{higher, gone}, 0}, // the log has let older entries go
		"twice made anew":           {[]audit.Entry{gone, higher, gone, set}, 0},
		"repaired after it":         {[]audit.Entry{repair, higher, gone, create}, 95},
		"by an earlier version":     {[]audit.Entry{entry("tag repair", "", `{"first":"97"}`), create}, 97},
		"a cut text":                {[]audit.Entry{entry("tag create", "", `{"tag":"order","sta`), create}, 0},
		"a cut text of a repair":    {[]audit.Entry{entry("tag repair", "", `{"max`), create}, 0},
		"a cut text of long before": {[]audit.Entry{repair, entry("tag create", "", `{"tag":"order","sta`)}, 95},
	} {
		if got := takeover.Lowest(tt.newest); got != tt.want {
			t.Errorf("%s: %d, want %d", name, got, tt.want)
		}
	}
	sequence := entry("sequence create", "", `{"sequence":"order","start":"1"}`)
	if takeover.Deleted([]audit.Entry{refused, sequence}) || !takeover.Deleted([]audit.Entry{create}) || !takeover.Deleted([]audit.Entry{gone}) {
		t.Error("a tag that has had a row is not known")
	}
}
