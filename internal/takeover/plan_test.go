package takeover_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/internal/takeover"
	"github.com/leaf-idgen/leaf/segment"
)

func TestPlan(t *testing.T) {
	one := func(c takeover.Counter) []takeover.Counter { return []takeover.Counter{c} }
	parts := func(modulus int64, residues ...int64) (all []takeover.Counter) {
		for _, r := range residues {
			all = append(all, takeover.Counter{End: 100 + r, Modulus: modulus, Residue: r})
		}
		return all
	}
	for _, tt := range []struct {
		name     string
		row      takeover.Row
		counters []takeover.Counter
		o        takeover.Options
		action   takeover.Action
		first    int64
		step     int64
	}{
		{"a new tag begins at the end", takeover.Row{}, one(takeover.Counter{End: 100}), takeover.Options{}, takeover.Create, 100, 1000},
		{"step of the other service", takeover.Row{}, one(takeover.Counter{End: 100, Step: 7}), takeover.Options{}, takeover.Create, 100, 7},
		{"step of the operator", takeover.Row{}, one(takeover.Counter{End: 100, Step: 7}), takeover.Options{Step: 9}, takeover.Create, 100, 9},
		{"a step that is too large", takeover.Row{}, one(takeover.Counter{End: 100, Step: 1 << 31}), takeover.Options{}, takeover.Create, 100, segment.MaxStep},
		{"gap", takeover.Row{}, one(takeover.Counter{End: 100}), takeover.Options{Gap: 50}, takeover.Create, 150, 1000},
		{"margin and gap", takeover.Row{}, one(takeover.Counter{End: 100, Margin: 7}), takeover.Options{Gap: 50}, takeover.Create, 157, 1000},
		{"rows above the counter", takeover.Row{}, one(takeover.Counter{End: 100, Filled: 300}), takeover.Options{}, takeover.Create, 300, 1000},
		{"rows below the counter", takeover.Row{}, one(takeover.Counter{End: 100, Filled: 30}), takeover.Options{}, takeover.Create, 100, 1000},
		{"the highest of several", takeover.Row{}, []takeover.Counter{{End: 90}, {End: 100}, {End: 80}}, takeover.Options{}, takeover.Create, 100, 1000},
		{"below", began(50, 99), one(takeover.Counter{End: 100}), takeover.Options{Gap: 5, Stopped: true}, takeover.Raise, 105, 1000},
		{"below, and the other service goes on", began(50, 99), one(takeover.Counter{End: 100}), takeover.Options{Gap: 5}, takeover.Refuse, 0, 0},
		{"not used, below, and the other service goes on", began(99, 99), one(takeover.Counter{End: 100}), takeover.Options{Gap: 5}, takeover.Refuse, 0, 0},
		{"at the end", began(100, 100), one(takeover.Counter{End: 100}), takeover.Options{}, takeover.Nothing, 0, 1000},
		{"at the end, within the margin", began(100, 1099), one(takeover.Counter{End: 100, Margin: 1000}), takeover.Options{Gap: 50}, takeover.Raise, 1150, 1000},
		{"behind the margin, no second gap", began(1100, 1100), one(takeover.Counter{End: 100, Margin: 1000}), takeover.Options{Gap: 50}, takeover.Nothing, 0, 1000},
		{"ahead", began(100, 900), one(takeover.Counter{End: 100}), takeover.Options{}, takeover.Nothing, 0, 1000},
		{"ahead, and nodes hold one from below", began(99, 900), one(takeover.Counter{End: 100}), takeover.Options{}, takeover.Raise, 900, 1000},
		{"ahead, nodes hold one from below, and the other service goes on", began(99, 900), one(takeover.Counter{End: 100}), takeover.Options{Gap: 50}, takeover.Refuse, 0, 0},
		{"ahead, nobody knows from where, and the other service goes on", takeover.Row{Exists: true, MaxID: 900, Unknown: "why"}, one(takeover.Counter{End: 100}), takeover.Options{Gap: 50}, takeover.Refuse, 0, 0},
		{"ahead, and nobody knows from where", takeover.Row{Exists: true, MaxID: 900, Unknown: "why"}, one(takeover.Counter{End: 100}), takeover.Options{}, takeover.Raise, 900, 1000},
		{"ahead, and nodes hold from the margin", began(1099, 9000), one(takeover.Counter{End: 100, Margin: 1000}), takeover.Options{}, takeover.Raise, 9000, 1000},
		{"deleted", takeover.Row{Deleted: true, Lowest: 99}, one(takeover.Counter{End: 100}), takeover.Options{}, takeover.Create, 100, 1000},
		{"deleted, above", takeover.Row{Deleted: true, Lowest: 100}, one(takeover.Counter{End: 100}), takeover.Options{}, takeover.Create, 100, 1000},
		{"no log, and the other service goes on", takeover.Row{Unknown: "why"}, one(takeover.Counter{End: 100}), takeover.Options{Gap: 50}, takeover.Refuse, 0, 0},
		{"deleted, and nodes know numbers above", takeover.Row{Deleted: true, Unknown: "why", Ended: 500}, one(takeover.Counter{End: 100}), takeover.Options{Gap: 50, Stopped: true}, takeover.Create, 500, 1000},
		{"deleted, and nodes know numbers below", takeover.Row{Deleted: true, Unknown: "why", Ended: 50}, one(takeover.Counter{End: 100}), takeover.Options{}, takeover.Create, 100, 1000},
		{"no log, and the other service is stopped", takeover.Row{Unknown: "why"}, one(takeover.Counter{End: 100}), takeover.Options{Gap: 50, Stopped: true}, takeover.Create, 150, 1000},
		{"deleted, above, and the other service goes on", takeover.Row{Deleted: true, Lowest: 100}, one(takeover.Counter{End: 100}), takeover.Options{Gap: 50}, takeover.Refuse, 0, 0},
		{"behind its own rows in the table", began(100, 200), one(takeover.Counter{End: 90, Filled: 201}), takeover.Options{}, takeover.Raise, 201, 1000},
		{"latched", takeover.Row{Exists: true, MaxID: 900, Problem: "latched"}, one(takeover.Counter{End: 100}), takeover.Options{}, takeover.Refuse, 0, 0},
		{"unreadable counter", takeover.Row{}, []takeover.Counter{{End: 100}, {Problem: "torn"}}, takeover.Options{}, takeover.Refuse, 0, 0},
		{"all remainders", takeover.Row{}, parts(3, 0, 1, 2), takeover.Options{}, takeover.Create, 102, 1000},
		{"a remainder is missing", takeover.Row{}, parts(3, 0, 2), takeover.Options{}, takeover.Refuse, 0, 0},
		{"one remainder twice", takeover.Row{}, parts(2, 1, 1), takeover.Options{}, takeover.Refuse, 0, 0},
		{"two kinds of remainders", takeover.Row{}, append(parts(2, 0), parts(3, 1)...), takeover.Options{}, takeover.Refuse, 0, 0},
		{"no remainders", takeover.Row{}, parts(1, 0), takeover.Options{}, takeover.Create, 100, 1000},
		{"AUTO_INCREMENT that goes on", takeover.Row{}, one(takeover.Counter{End: 100, Follows: true}), takeover.Options{Gap: 50}, takeover.Refuse, 0, 0},
		{"AUTO_INCREMENT that is stopped", takeover.Row{}, one(takeover.Counter{End: 100, Follows: true}), takeover.Options{Gap: 50, Stopped: true}, takeover.Create, 150, 1000},
		{"a service that no CHECK stops goes on", takeover.Row{}, one(takeover.Counter{End: 100, Unchecked: "5.7.44"}), takeover.Options{Gap: 50}, takeover.Refuse, 0, 0},
		{"a service that no CHECK stops is stopped", takeover.Row{}, one(takeover.Counter{End: 100, Unchecked: "5.7.44"}), takeover.Options{Gap: 50, Stopped: true}, takeover.Create, 150, 1000},
		{"the plan for a service that no CHECK stops", takeover.Row{}, one(takeover.Counter{End: 100, Unchecked: "5.7.44"}), takeover.Options{}, takeover.Create, 100, 1000},
		{"the largest number", takeover.Row{}, one(takeover.Counter{End: segment.MaxMaxID}), takeover.Options{}, takeover.Create, segment.MaxMaxID, 1000},
		{"above the largest number", takeover.Row{}, one(takeover.Counter{End: segment.MaxMaxID}), takeover.Options{Gap: 1}, takeover.Refuse, 0, 0},
		{"a sum that wraps", takeover.Row{}, one(takeover.Counter{End: segment.MaxMaxID}), takeover.Options{Gap: segment.MaxMaxID}, takeover.Refuse, 0, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := takeover.NewPlan("order", tt.row, tt.counters, tt.o)
			if got.Action != tt.action || got.First != tt.first || got.Step != tt.step {
				t.Errorf("got %s at %d with step %d (%s), want %s at %d with step %d", got.Action, got.First, got.Step, got.Reason, tt.action, tt.first, tt.step)
			}
			if drops := got.Action == takeover.Raise || tt.row.Deleted && tt.row.Lowest < tt.first; got.Drop != drops {
				t.Errorf("nodes drop what they hold: %v, want %v", got.Drop, drops)
			}
			if got.Action == takeover.Refuse && got.Reason == "" {
				t.Error("refused without a reason")
			}
		})
	}
}

// TestStopLiesBelowTheTag: the statement keeps the other service below every number of the tag, and where it stands if it is
// stopped. With a gap, a tag that has had other numbers is refused.
func TestStopLiesBelowTheTag(t *testing.T) {
	for name, tt := range map[string]struct {
		row             takeover.Row
		filled          int64
		stopped, beside int64 // 0: refused
	}{
		"a new tag":                            {takeover.Row{}, 0, 100, 150},
		"a new tag above rows":                 {takeover.Row{}, 300, 100, 350},
		"a tag ahead":                          {began(120, 500), 0, 100, 120},
		"a tag ahead whose IDs are in rows":    {began(120, 500), 480, 100, 120},
		"a tag ahead, and a row above it":      {began(120, 500), 700, 100, 120},
		"a tag that begins nobody knows where": {takeover.Row{Exists: true, MaxID: 500, Unknown: "why"}, 0, 100, 0},
		"a tag that was passed":                {began(50, 90), 0, 100, 0},
		"a tag that was passed and is ahead":   {began(50, 500), 0, 100, 0},
		"a tag ahead, and one before it":       {takeover.Row{Exists: true, MaxID: 500, Lowest: 120, Deleted: true, Issued: []leaf.Range{{Lo: 120, Hi: 500}}}, 0, 100, 0},
		"a deleted tag ahead":                  {deleted(leaf.Range{Lo: 20, Hi: 40}, leaf.Range{Lo: 120, Hi: 130}), 0, 100, 0},
		"a deleted tag that was passed":        {deleted(leaf.Range{Lo: 20, Hi: 110}), 0, 100, 0},
		"a deleted tag below":                  {deleted(leaf.Range{Lo: 20, Hi: 40}), 0, 100, 0},
		"a deleted tag of which no log tells":  {takeover.Row{Deleted: true, Unknown: "why"}, 0, 100, 0},
	} {
		c := takeover.Counter{End: 100, Filled: tt.filled, Stop: func(first int64) string { return fmt.Sprintf("below %d", first) }}
		for o, want := range map[takeover.Options]int64{{Gap: 50}: tt.beside, {Gap: 50, Stopped: true}: tt.stopped, {Stopped: true}: tt.stopped, {}: tt.stopped} {
			p := takeover.NewPlan("order", tt.row, []takeover.Counter{c}, o)
			says := fmt.Sprintf("below %d", want)
			if want == 0 {
				says = ""
			}
			if got := strings.Join(p.Stop, ", "); got != says || (p.Action == takeover.Refuse) != (want == 0) {
				t.Errorf("%s, %+v: %s, and got %q, want %q", name, o, p.Action, got, says)
			}
		}
	}
}

// deleted is a tag without a row that has handed out numbers.
func deleted(issued ...leaf.Range) takeover.Row {
	return takeover.Row{Deleted: true, Lowest: issued[0].Lo, Issued: issued}
}
