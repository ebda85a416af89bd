package chaos_test

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/leaf-idgen/leaf/internal/test/chaos"
)

// document is a small one with one promise kept and one broken.
func document() *chaos.Document {
	const what = "what was done"
	return &chaos.Document{Made: time.Unix(0, 0), Command: "make chaos " + what, Commit: "c0ffee", Machine: what, Reports: []*chaos.Report{{
		Topology: "mariadb", About: what, Expect: "No ID twice.", Seed: 7, Ran: 20 * time.Second, Versions: []string{what},
		Kinds: []chaos.Kind{
			{Name: "node killed", About: what, Fired: 1, On: 2 * time.Second, All: chaos.Share{InTime: 2, All: 3}, Outcomes: map[string]int{"refused": 1}},
			{Name: "never came"},
		},
		Events:  []chaos.Event{{Fault: "node killed", Target: what, Note: what, Begin: time.Second, Healed: 3 * time.Second, Green: 4 * time.Second}},
		Verdict: chaos.Verdict{IDs: 1000, Logs: 3},
		Checks:  []chaos.Check{{Kept: true, Text: "first promise"}, {Kept: false, Text: "second promise " + what}},
		Kept:    "/tmp/kept",
	}}}
}

// TestText: the report says that a promise was broken, which one, and where the logs are.
func TestText(t *testing.T) {
	var b bytes.Buffer
	if err := document().WriteText(&b); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"a promise was BROKEN", "BROKEN second promise", "ok     first promise", "66.66 %", "node killed: 1 refused", "/tmp/kept", "Seed 7"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("the text lacks %q:\n%s", want, b.String())
		}
	}
}

// TestShare: a percentage is rounded down, so that only all are 100 %.
func TestShare(t *testing.T) {
	for _, tt := range []struct {
		share chaos.Share
		want  string
	}{
		{chaos.Share{}, "-"},
		{chaos.Share{InTime: 5, All: 5}, "100 %"},
		{chaos.Share{InTime: 99999, All: 100000}, "99.99 %"},
		{chaos.Share{InTime: 0, All: 3}, "0.00 %"},
		{chaos.Share{InTime: 1, All: 3}, "33.33 %"},
	} {
		if got := tt.share.String(); got != tt.want {
			t.Errorf("%+v is %q, want %q", tt.share, got, tt.want)
		}
	}
}
