package chaos_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/leaf-idgen/leaf/internal/test/chaos"
)

const (
	killed = "node killed"
	gone   = "database gone"
)

// at is a request at that second.
func at(second float64, outcome string) chaos.Sample {
	return chaos.NewSample(time.Duration(second*float64(time.Second)), time.Millisecond, outcome)
}

// event is one on some nodes from second to second, all served half a second after.
func event(fault string, from, to float64, nodes ...int) chaos.Event {
	return chaos.Event{
		Fault: fault, Nodes: nodes,
		Begin:  time.Duration(from * float64(time.Second)),
		Healed: time.Duration(to * float64(time.Second)), Green: time.Duration((to + 0.5) * float64(time.Second)),
	}
}

// TestJudge: each promise about faults, kept and broken.
func TestJudge(t *testing.T) {
	scene := func(s chaos.Scene) chaos.Scene {
		s.Ran = 60 * time.Second
		s.Kinds = []string{killed, gone}
		return s
	}
	both := []chaos.Event{event(killed, 10, 15, 0), event(gone, 20, 25, 0, 1, 2)}
	for _, tt := range []struct {
		name  string
		scene chaos.Scene
		want  []string // parts of the broken promises, in order
	}{
		{"all is well", chaos.Scene{Events: both, Stock: true, Samples: map[string][]chaos.Sample{"a": {at(5, "ok")}}}, nil},
		{"the killed node fails while it is down", chaos.Scene{Events: both, Stock: true, Samples: map[string][]chaos.Sample{"a": {at(9.5, "timeout"), at(12, "refused"), at(15.2, "not_ready")}}}, nil},
		{"and later too", chaos.Scene{Events: both, Stock: true, Samples: map[string][]chaos.Sample{"a": {at(15.6, "not_ready")}}}, []string{"with stock is served"}},
		{"another node fails meanwhile", chaos.Scene{Events: both, Samples: map[string][]chaos.Sample{"b": {at(12, "exhausted")}}}, []string{"others fail no request"}},
		{"stock fails without the database", chaos.Scene{Events: both, Stock: true, Samples: map[string][]chaos.Sample{"b": {at(22, "exhausted")}}}, []string{"with stock is served"}},
		{"one late reply is nothing", chaos.Scene{Events: both, Stock: true, Samples: map[string][]chaos.Sample{"b": {at(22, "late")}}}, nil},
		{"a kind does not hide behind the others", chaos.Scene{
			Events: both, Stock: true,
			Samples: map[string][]chaos.Sample{"a": slices.Repeat([]chaos.Sample{at(5, "ok")}, 10_000), "b": {at(22, "late"), at(22.1, "late"), at(22.2, "ok")}},
		}, []string{"database gone: 2 of 3"}},
		{"other tags may", chaos.Scene{Events: both, Samples: map[string][]chaos.Sample{"b": {at(22, "exhausted")}}}, nil},
		{"stock waits for the database", chaos.Scene{Events: both, Stock: true, Samples: map[string][]chaos.Sample{"b": {at(22, "late"), at(22.1, "unsent")}}}, []string{"answered within 1s"}},
		{"or for the machine", chaos.Scene{Events: both, Stock: true, Lost: time.Second, Samples: map[string][]chaos.Sample{"b": {at(22, "late")}}}, nil},
		{"a tag latches where nothing is lost", chaos.Scene{Events: both, Samples: map[string][]chaos.Sample{"b": {at(22, "regress")}}}, []string{"no tag latches"}},
		{"and where commits are", chaos.Scene{Fenced: true, Events: both, Samples: map[string][]chaos.Sample{"b": {at(22, "regress")}}}, nil},
		{"the calm is none", chaos.Scene{Events: both, Samples: map[string][]chaos.Sample{"b": {at(58, "exhausted")}}}, []string{"in the last 3s"}},
		{"a kind never came", chaos.Scene{Enough: true, Events: both[:1]}, []string{"but not: database gone"}},
		{"for want of time", chaos.Scene{Events: both[:1]}, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			broken, _ := chaos.Judge(scene(tt.scene))
			if len(broken) != len(tt.want) {
				t.Fatalf("broken %q, want %q", broken, tt.want)
			}
			for i, part := range tt.want {
				if !strings.Contains(broken[i], part) {
					t.Errorf("broken %q, want %q", broken[i], part)
				}
			}
		})
	}
}

// TestBusyMachine: requests that failed on a machine that was too busy are shown, and
// not as a promise that was kept.
func TestBusyMachine(t *testing.T) {
	rep := chaos.Judged(chaos.Scene{
		Ran: 60 * time.Second, Kinds: []string{killed}, Lost: time.Second, Events: []chaos.Event{event(killed, 10, 15, 0)},
		Samples: map[string][]chaos.Sample{"b": {at(12, "timeout"), at(58, "timeout")}},
	})
	shown := 0
	for _, c := range rep.Checks {
		if strings.HasPrefix(c.Text, "not judged") && strings.Contains(c.Text, ": 1: test at node b") {
			shown++
		}
	}
	if rep.Failed() || shown != 2 {
		t.Errorf("%+v", rep.Checks)
	}
}

// TestTable: each request is in the row of what was on when it was due.
func TestTable(t *testing.T) {
	pair := []chaos.Event{event(gone, 40, 42, 0, 1, 2), event(killed, 40, 44, 1)}
	for i := range pair {
		pair[i].Pair = true
		pair[i].Green = 45 * time.Second
	}
	_, kinds := chaos.Judge(chaos.Scene{
		Ran: 60 * time.Second, Kinds: []string{killed, gone}, Stock: true,
		Events: append([]chaos.Event{event(killed, 10, 15, 0)}, pair...),
		Samples: map[string][]chaos.Sample{
			"a": {at(5, "ok"), at(12, "refused"), at(15.2, "late"), at(41, "ok")},
			"b": {at(12, "ok"), at(43, "refused")},
		},
	})
	type row struct {
		Fired                    int
		On                       time.Duration
		All, Aimed, Other, Stock chaos.Share
	}
	got := map[string]row{}
	for _, k := range kinds {
		got[k.Name] = row{k.Fired, k.On, k.All, k.Aimed, k.Other, k.Stock}
	}
	want := map[string]row{
		killed:         {2, 5 * time.Second, chaos.Share{InTime: 1, All: 2}, chaos.Share{InTime: 0, All: 1}, chaos.Share{InTime: 1, All: 1}, chaos.Share{InTime: 1, All: 1}},
		gone:           {Fired: 1},
		"two at once":  {1, 4 * time.Second, chaos.Share{InTime: 1, All: 2}, chaos.Share{}, chaos.Share{}, chaos.Share{InTime: 1, All: 1}},
		"after a heal": {On: 1500 * time.Millisecond, All: chaos.Share{All: 1}},
		"no fault":     {On: 49500 * time.Millisecond, All: chaos.Share{InTime: 1, All: 1}, Stock: chaos.Share{InTime: 1, All: 1}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("table (-want +got):\n%s", diff)
	}
}

// TestJudgeApplication: callers of the Go client fail while a node is killed, or at
// another time.
func TestJudgeApplication(t *testing.T) {
	events := []chaos.Event{event(killed, 10, 15, 0), event(gone, 20, 25, 0, 1, 2)}
	for _, tt := range []struct {
		name       string
		violations int64
		sample     chaos.Sample
		want       string // "": nothing is broken
	}{
		{"all is well", 0, at(12, "ok"), ""},
		{"a node is killed", 0, at(12, "not_ready"), "1 failed requests of 1"},
		{"it is not yet back", 0, at(15.2, "timeout"), "1 failed requests of 1"},
		{"the database is gone", 0, at(22, "exhausted"), ""},
		{"the client saw a repeat", 1, at(12, "ok"), "1 answers that repeat"},
	} {
		broken := chaos.JudgeApplication(tt.violations, events, tt.sample)
		if kept := len(broken) == 0; kept != (tt.want == "") || !kept && !strings.Contains(broken[0], tt.want) {
			t.Errorf("%s: broken %q, want %q", tt.name, broken, tt.want)
		}
	}
}

// TestJudgeSplit: a split brain in which one side stood still was none.
func TestJudgeSplit(t *testing.T) {
	for _, tt := range []struct {
		former, new int64
		kept        bool
	}{{7, 1000, true}, {0, 1000, false}, {7, 0, false}} {
		if broken := chaos.JudgeSplit(tt.former, tt.new); (len(broken) == 0) != tt.kept {
			t.Errorf("%+v: broken %q", tt, broken)
		}
	}
}

// TestJudgeIdle: a health check without an answer in time counts, unless the machine was too busy.
func TestJudgeIdle(t *testing.T) {
	const late = "/healthz: no answer"
	if broken := chaos.JudgeIdle(late, 0); !slices.Equal(broken, []string{late}) {
		t.Errorf("broken %q, want %q", broken, late)
	}
	if broken := chaos.JudgeIdle(late, time.Second); len(broken) > 0 {
		t.Errorf("on a machine that was busy: broken %q", broken)
	}
}
