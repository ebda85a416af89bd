package takeover_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/internal/takeover"
)

// began is a row whose tag began at first.
func began(first, maxID int64) takeover.Row {
	return takeover.Row{Exists: true, MaxID: maxID, Lowest: first, Issued: []leaf.Range{{Lo: first, Hi: maxID}}}
}

func TestCompare(t *testing.T) {
	for _, tt := range []struct {
		name string
		row  takeover.Row
		ends []int64
		want takeover.Comparison
	}{
		{"no tag", takeover.Row{}, []int64{100}, takeover.Comparison{End: 100, Verdict: takeover.NoTag}},
		{
			"deleted",
			takeover.Row{Deleted: true, Issued: []leaf.Range{{Lo: 10, Hi: 20}}},
			[]int64{100},
			takeover.Comparison{End: 100, Verdict: takeover.Meet, Both: leaf.Range{Lo: 10, Hi: 20}, Numbers: 10},
		},
		{"deleted, above", takeover.Row{Deleted: true, Issued: []leaf.Range{{Lo: 100, Hi: 200}}}, []int64{100}, takeover.Comparison{End: 100, Verdict: takeover.NoTag}},
		{"deleted, beginning unknown", takeover.Row{Deleted: true, Unknown: "why"}, []int64{100}, takeover.Comparison{End: 100, Verdict: takeover.Unknown, Reason: "why"}},
		{"right behind", began(100, 300), []int64{100}, takeover.Comparison{End: 100, Row: 300, Verdict: takeover.Apart}},
		{"a gap", began(150, 300), []int64{100}, takeover.Comparison{End: 100, Row: 300, Verdict: takeover.Apart, Left: 50}},
		{"not used yet", began(150, 150), []int64{100}, takeover.Comparison{End: 100, Row: 150, Verdict: takeover.Apart, Left: 50}},
		{"one number", began(99, 300), []int64{100}, takeover.Comparison{End: 100, Row: 300, Verdict: takeover.Meet, Both: leaf.Range{Lo: 99, Hi: 100}, Numbers: 1}},
		{"the highest counter decides", began(100, 300), []int64{90, 110}, takeover.Comparison{End: 110, Row: 300, Verdict: takeover.Meet, Both: leaf.Range{Lo: 100, Hi: 110}, Numbers: 10}},
		{"the next range", began(99, 99), []int64{100}, takeover.Comparison{End: 100, Row: 99, Verdict: takeover.WillMeet}},
		{"all of the tag", began(10, 20), []int64{100}, takeover.Comparison{End: 100, Row: 20, Verdict: takeover.Meet, Both: leaf.Range{Lo: 10, Hi: 20}, Numbers: 10}},
		{
			"raised after it was used",
			takeover.Row{Exists: true, MaxID: 200, Issued: []leaf.Range{{Lo: 10, Hi: 20}, {Lo: 30, Hi: 40}, {Lo: 150, Hi: 200}}},
			[]int64{100},
			takeover.Comparison{End: 100, Row: 200, Verdict: takeover.Meet, Both: leaf.Range{Lo: 10, Hi: 20}, Numbers: 20},
		},
		{
			"an earlier range is next",
			takeover.Row{Exists: true, MaxID: 900, Issued: []leaf.Range{{Lo: 130, Hi: 140}, {Lo: 500, Hi: 900}}},
			[]int64{100},
			takeover.Comparison{End: 100, Row: 900, Verdict: takeover.Apart, Left: 30},
		},
		{"beginning unknown", takeover.Row{Exists: true, MaxID: 900, Unknown: "why"}, []int64{100}, takeover.Comparison{End: 100, Row: 900, Verdict: takeover.Unknown, Reason: "why"}},
		{"no name of a tag", takeover.Row{Problem: "why"}, []int64{100}, takeover.Comparison{End: 100, Verdict: takeover.Unknown, Reason: "why"}},
		{"row unusable", takeover.Row{Exists: true, MaxID: 900, Problem: "why"}, []int64{100}, takeover.Comparison{End: 100, Row: 900, Verdict: takeover.Unknown, Reason: "why"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var counters []takeover.Counter
			for _, end := range tt.ends {
				counters = append(counters, takeover.Counter{Name: "orders", End: end, Filled: 1000})
			}
			tt.want.Tag = "order"
			if diff := cmp.Diff(tt.want, takeover.Compare("order", tt.row, counters)); diff != "" {
				t.Errorf("Compare (-want +got):\n%s", diff)
			}
		})
	}
}

// TestCompareUnknown: a counter that says nothing, among others that do, leaves no verdict.
func TestCompareUnknown(t *testing.T) {
	for name, c := range map[string]takeover.Counter{"unreadable": {Problem: "torn"}, "follows": {Follows: true}} {
		got := takeover.Compare("order", began(100, 200), []takeover.Counter{{End: 10}, c})
		if got.Verdict != takeover.Unknown || got.Reason == "" {
			t.Errorf("%s: got %+v, want unknown with a reason", name, got)
		}
	}
}

// TestCompareOneDatabaseOfTwo: what is not read may be higher. So no tag is apart from it, but what meets the counters that were
// read does.
func TestCompareOneDatabaseOfTwo(t *testing.T) {
	for want, row := range map[takeover.Verdict]takeover.Row{
		takeover.Unknown:  began(100, 200),
		takeover.Meet:     began(50, 200),
		takeover.WillMeet: began(50, 50),
		takeover.NoTag:    {},
	} {
		got := takeover.Compare("order", row, []takeover.Counter{{End: 100, Modulus: 2}})
		if got.Verdict != want || (got.Reason != "") != (want == takeover.Unknown) {
			t.Errorf("got %+v, want %s", got, want)
		}
	}
}

func TestMoved(t *testing.T) {
	for name, tt := range map[string]struct {
		before, now takeover.Counter
		want        bool
	}{
		"nothing":                {takeover.Counter{End: 5, Filled: 4}, takeover.Counter{End: 5, Filled: 4}, false},
		"on":                     {takeover.Counter{End: 5}, takeover.Counter{End: 6}, true},
		"back":                   {takeover.Counter{End: 5}, takeover.Counter{End: 4}, true},
		"a row from a cache":     {takeover.Counter{End: 50, Filled: 4}, takeover.Counter{End: 50, Filled: 5}, true},
		"a row was deleted":      {takeover.Counter{End: 50, Filled: 4}, takeover.Counter{End: 50, Filled: 3}, false},
		"another database's":     {takeover.Counter{End: 5, From: "x"}, takeover.Counter{End: 6, From: "y"}, false},
		"another of the service": {takeover.Counter{End: 5, Name: "x"}, takeover.Counter{End: 6, Name: "y"}, false},
	} {
		if got := takeover.Moved([]takeover.Counter{tt.before}, []takeover.Counter{tt.now}); (len(got) == 1) != tt.want {
			t.Errorf("%s: got %+v", name, got)
		}
	}
}
