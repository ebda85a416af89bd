package chaos_test

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/leaf-idgen/leaf/idlog"
	"github.com/leaf-idgen/leaf/internal/test/chaos"
)

// answer is a reply of a tag in strict order as a client of a node logs it.
type answer struct {
	node, tag  string
	begin, end int64
	ids        []int64
}

// TestVerifyOrder plants replies against real time among good ones: they are found, and nothing else is.
func TestVerifyOrder(t *testing.T) {
	for _, tt := range []struct {
		name                          string
		answers                       []answer
		later, inversions, duplicates uint64
	}{
		{"one after the other", []answer{{"a", "t", 1, 2, []int64{1, 2}}, {"b", "t", 3, 4, []int64{3}}, {"a", "t", 5, 6, []int64{4}}}, 2, 0, 0},
		{"side by side in any order", []answer{{"a", "t", 1, 4, []int64{7}}, {"b", "t", 2, 5, []int64{6}}, {"c", "t", 3, 3, []int64{5}}}, 0, 0, 0},
		{"another node was behind", []answer{{"a", "t", 1, 2, []int64{7}}, {"b", "t", 3, 4, []int64{6}}}, 1, 1, 0},
		{"within a batch", []answer{{"a", "t", 1, 2, []int64{1, 2, 9}}, {"b", "t", 3, 4, []int64{5}}}, 1, 1, 0},
		{"one client went back", []answer{{"a", "t", 1, 2, []int64{7}}, {"a", "t", 3, 4, []int64{6}}}, 1, 1, 0},
		{"tags have nothing to do with each other", []answer{{"a", "t", 1, 2, []int64{7}}, {"a", "u", 3, 4, []int64{6}}}, 0, 0, 0},
		{"two nodes issue one ID", []answer{{"a", "t", 1, 3, []int64{7}}, {"b", "t", 2, 4, []int64{7}}}, 0, 0, 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			folder := t.TempDir()
			logs := map[string]*chaos.Log{}
			var all []*chaos.Log
			for _, a := range tt.answers {
				if logs[a.node] == nil {
					l, err := chaos.NewLog(filepath.Join(folder, a.node), a.node, "test", false)
					if err != nil {
						t.Fatal(err)
					}
					logs[a.node], all = l, append(all, l)
				}
				if err := logs[a.node].WriteCall(a.tag, idlog.Call{Begin: a.begin, End: a.end}, a.ids...); err != nil {
					t.Fatal(err)
				}
			}
			for _, l := range all {
				if err := l.Close(); err != nil {
					t.Fatal(err)
				}
			}
			got, err := chaos.Verify(t.Context(), folder, all...)
			if err != nil {
				t.Fatal(err)
			}
			if got.Later != tt.later || got.Inversions != tt.inversions || got.Duplicates != tt.duplicates || got.Disorders+got.WithinNode != 0 {
				t.Errorf("%+v, want %d later, %d inversions, %d duplicates", got, tt.later, tt.inversions, tt.duplicates)
			}
			if got := strings.Join(got.Examples, "\n"); (tt.inversions+tt.duplicates > 0) != strings.Contains(got, tt.answers[len(tt.answers)-1].node+"/test.1.ids:") {
				t.Errorf("examples %q", got)
			}
		})
	}
}

// TestJudgeOrder: each promise about tags in strict order, kept and broken.
func TestJudgeOrder(t *testing.T) {
	events := []chaos.Event{event(killed, 10, 15, 0), event(gone, 20, 25, 0, 1, 2)}
	waited := func(second, seconds float64, outcome string) chaos.Sample {
		return chaos.NewSample(time.Duration(second*float64(time.Second)), time.Duration(seconds*float64(time.Second)), outcome)
	}
	good := chaos.Verdict{Later: 1000}
	for _, tt := range []struct {
		name      string
		verdict   chaos.Verdict
		unordered bool
		lost      time.Duration // by a machine that was busy
		node      string
		sample    chaos.Sample
		want      string // part of the broken promise; "": none
	}{
		{"all is well", good, false, 0, "b", waited(12, 3, "ok"), ""},
		{"a reply against real time", chaos.Verdict{Later: 1000, Inversions: 1}, false, 0, "b", at(5, "ok"), "1 are not"},
		{"where the database may lose writes", chaos.Verdict{Later: 1000, Inversions: 1}, true, 0, "b", at(5, "ok"), ""},
		{"a verdict over nothing", chaos.Verdict{Later: 10}, false, 0, "b", at(5, "ok"), "at least 100"},
		{"nothing is broken", good, false, 0, "b", at(5, "not_ready"), "1 requests"},
		{"another node is killed", good, false, 0, "b", at(12, "not_ready"), "test at node b after 12.00 s: not_ready"},
		{"and the answer is late", good, false, 0, "b", waited(9.9, 6, "late"), "1 requests"},
		{"the client had no time to ask", good, false, 0, "b", waited(12, 6, "unsent"), ""},
		{"the node itself is killed", good, false, 0, "a", at(12, "refused"), ""},
		{"the database goes", good, false, 0, "b", waited(19, 3, "not_ready"), ""},
		{"the machine is busy", good, false, time.Second, "b", at(12, "not_ready"), ""},
	} {
		scene := chaos.Scene{
			Ran: time.Minute, Kinds: []string{killed, gone}, Lost: tt.lost, Events: events, Strict: true,
			Samples: map[string][]chaos.Sample{tt.node: {tt.sample}},
		}
		broken := chaos.JudgeOrder(scene, tt.verdict, tt.unordered)
		if kept := len(broken) == 0; kept != (tt.want == "") || !kept && !strings.Contains(fmt.Sprint(broken), tt.want) {
			t.Errorf("%s: broken %q, want %q", tt.name, broken, tt.want)
		}
	}
}

// TestStrictTable: requests for tags in strict order have a column of their own.
func TestStrictTable(t *testing.T) {
	rep := chaos.Judged(chaos.Scene{
		Ran: time.Minute, Kinds: []string{killed}, Events: []chaos.Event{event(killed, 10, 15, 0)}, Strict: true,
		Samples: map[string][]chaos.Sample{"a": {at(12, "refused")}, "b": {at(12, "ok"), at(13, "not_ready")}},
	})
	k := rep.Kinds[0]
	if want := (chaos.Share{InTime: 1, All: 2}); k.Strict != want || k.All.All != 0 || k.Outcomes["strict not_ready"] != 1 {
		t.Errorf("%+v", k)
	}
	if rep.Failed() {
		t.Errorf("judged as other tags: %+v", rep.Checks)
	}
}
