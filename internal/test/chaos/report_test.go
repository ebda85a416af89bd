package chaos_test

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/leaf-idgen/leaf/internal/test/chaos"
)

// document is a small one with text in it that would harm a page.
func document() *chaos.Document {
	const evil = `<script>alert("1")</script>`
	bucket := chaos.Bucket{OK: 10, Failed: 3, Late: 1, P50: time.Millisecond, P99: time.Second, Max: 2 * time.Second}
	return &chaos.Document{Made: time.Unix(0, 0), Command: "make chaos " + evil, Commit: "c0ffee", Machine: evil, Reports: []*chaos.Report{{
		Topology: "mariadb", About: evil, Expect: "No ID twice.", Seed: 7, Ran: 20 * time.Second, Versions: []string{evil},
		Kinds: []chaos.Kind{
			{Name: "node killed", About: evil, Fired: 1, On: 2 * time.Second, All: chaos.Share{InTime: 2, All: 3}, Outcomes: map[string]int{"refused": 1}},
			{Name: "never came"},
		},
		Events:  []chaos.Event{{Fault: "node killed", Target: evil, Note: evil, Begin: time.Second, Healed: 3 * time.Second, Green: 4 * time.Second}},
		Verdict: chaos.Verdict{IDs: 1000, Logs: 3},
		Checks:  []chaos.Check{{Kept: true, Text: "first promise"}, {Kept: false, Text: "second promise " + evil}},
		Series:  chaos.Series{Bucket: time.Second, Nodes: []chaos.NodeSeries{{Name: "a", Buckets: []chaos.Bucket{bucket, {}, bucket}}}},
		Kept:    "/tmp/kept",
	}}}
}

// TestHTML: the page escapes what it shows, needs nothing from elsewhere, and says
// that a promise was broken.
func TestHTML(t *testing.T) {
	var b bytes.Buffer
	if err := document().WriteHTML(&b); err != nil {
		t.Fatal(err)
	}
	page := b.String()
	for _, foreign := range []string{"<script", "http://", "https://", "src=", "@import", "ZgotmplZ", "NaN", "<nil>"} {
		if strings.Contains(page, foreign) {
			t.Errorf("the page contains %q", foreign)
		}
	}
	for _, want := range []string{"a promise was BROKEN", "✗", "second promise", "66.66 %", "1 refused", "/tmp/kept", "<svg", "node a: requests", "<code>7</code>"} {
		if !strings.Contains(page, want) {
			t.Errorf("the page lacks %q", want)
		}
	}
}

// TestText: the same for the text, which is for people and for grep.
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
