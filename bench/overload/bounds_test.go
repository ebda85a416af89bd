package main

import (
	"strings"
	"testing"
	"time"
)

// good is a part over one protocol in which every bound holds, with 1,000 IDs per second
// as the peak.
func good(part string) []phase {
	with := func(load string, offered float64, asked, ids int64, p99 time.Duration) phase {
		p := phase{part: part, protocol: "http", load: load, offered: offered, tally: newTally(), goodput: float64(ids), memory: memory{before: 30 << 20, peak: 60 << 20}}
		p.asked, p.count[issued], p.most = asked, ids, 100
		for range 100 {
			p.admitted.Note(p99)
		}
		return p
	}
	return []phase{
		with("capacity", 0, 1000, 1000, 60*time.Millisecond),
		with("0.5x", 500, 500, 500, 30*time.Millisecond),
		with("5x", 5000, 5000, 900, 240*time.Millisecond),
	}
}

func TestJudge(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name   string
		part   string
		change func(p []phase)
		want   string // what is broken; "": nothing
	}{
		{"all holds", partStore, func([]phase) {}, ""},
		{"all holds", partCPU, func([]phase) {}, ""},
		{"goodput falls", partStore, func(p []phase) { p[2].goodput = 849 }, "http, 5x: 849 IDs/s in time, at least 850"},
		{"goodput is less than what is asked for", partStore, func(p []phase) { p[1].goodput = 424 }, "http, 0.5x: 424 IDs/s in time, at least 425"},
		{"a higher peak counts", partCPU, func(p []phase) { p[0].goodput = 2000 }, "at least 1200"},
		{"slow", partStore, func(p []phase) {
			for range 5 {
				p[2].admitted.Note(700 * time.Millisecond)
			}
		}, "5x: p99 of the admitted 705ms, at most 650ms"},
		{"slow from stock", partCPU, func(p []phase) {
			for range 5 {
				p[2].admitted.Note(300 * time.Millisecond)
			}
		}, "5x: p99 of the admitted 302ms, at most 250ms"},
		{"memory", partStore, func(p []phase) { p[2].peak = 30<<20 + 10_000*(10<<10) + 100*(64<<10) + 1 }, "5x: memory 133 MB, at most 133 MB"},
		{"twice", partStore, func(p []phase) { p[1].twice = 1 }, "0.5x: 1 IDs that came twice"},
		{"no hint", partStore, func(p []phase) { p[2].noHint = 3 }, "5x: 3 requests rejected without a hint"},
		{"broken", partStore, func(p []phase) { p[2].count[broken] = 2 }, "5x: 2 broken requests"},
		{"the load was not generated", partStore, func(p []phase) { p[2].asked = 4700 }, "5x: only 4700 of 5000 requests per second were sent"},
	} {
		t.Run(tt.name+" "+tt.part, func(t *testing.T) {
			t.Parallel()
			phases := good(tt.part)
			tt.change(phases)
			var bad []string
			for _, f := range brokenOnes(judge(phases, time.Second)) {
				bad = append(bad, f.text)
			}
			if got := strings.Join(bad, "\n"); len(bad) > 1 || (tt.want == "") != (got == "") || !strings.Contains(got, tt.want) {
				t.Errorf("broken: %q, want %q", got, tt.want)
			}
			var text strings.Builder
			if n := tabulate(&text, phases, options{parts: []string{tt.part}, slice: time.Second}); n != len(bad) {
				t.Errorf("the report says that %d are broken:\n%s", n, text.String())
			}
		})
	}
}

// TestPeaksAreApart: the goodput of one protocol is not held against that of another.
func TestPeaksAreApart(t *testing.T) {
	t.Parallel()
	phases := append(good(partStore), good(partCPU)...)
	other := good(partStore)
	for i := range other {
		other[i].protocol = "grpc"
		other[i].goodput *= 2
	}
	if bad := brokenOnes(judge(append(phases, other...), time.Second)); len(bad) > 0 {
		t.Errorf("broken: %v", bad)
	}
}
