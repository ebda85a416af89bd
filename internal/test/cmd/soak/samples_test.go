package main

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// flat is a run in which nothing grew.
func flat() *samples {
	s := &samples{every: 10 * time.Second}
	for i := range 60 {
		s.all = append(s.all, sample{
			at: time.Duration(i) * s.every, memory: 30 << 20, goroutines: 50, files: 40, cpu: float64(i),
			p50: 2 * time.Millisecond, p99: 20 * time.Millisecond,
		})
	}
	return s
}

func TestGrew(t *testing.T) {
	for _, tt := range []struct {
		name  string
		spoil func(i int, n *sample)
		want  string // in the only complaint; "": none
	}{
		{"flat", func(int, *sample) {}, ""},
		{"memory", func(i int, n *sample) { n.memory += float64(i) * (1 << 20) }, "resident memory"},
		{"goroutines", func(i int, n *sample) { n.goroutines += float64(i) }, "goroutines"},
		{"descriptors", func(i int, n *sample) { n.files += float64(i) }, "descriptors"},
		{"latency", func(i int, n *sample) { n.p50 += time.Duration(i) * time.Millisecond }, "p50"},
		{"slowest", func(i int, n *sample) { n.p99 += time.Duration(i) * 5 * time.Millisecond }, "p99"},
		{"no memory", func(_ int, n *sample) { n.memory = 0 }, "resident memory, bytes: not measured"},
		{"no latency", func(_ int, n *sample) { n.p99 = 0 }, "p99, ns: not measured"},
		{"latency, then none", func(i int, n *sample) { n.p50 *= time.Duration(1 - i/30) }, "p50, ns: not measured"},
	} {
		s := flat()
		for i := range s.all {
			tt.spoil(i, &s.all[i])
		}
		got := s.grew()
		if tt.want == "" && len(got) > 0 || tt.want != "" && (len(got) != 1 || !strings.Contains(got[0], tt.want)) {
			t.Errorf("%s: %q, want %q", tt.name, got, tt.want)
		}
	}
	s := flat()
	if s.all = s.all[:10]; len(s.grew()) == 0 {
		t.Error("10 samples are enough")
	}
}

func TestMissed(t *testing.T) {
	for _, tt := range []struct {
		r    result
		want string
	}{
		{result{Requests: 1000, IDs: 1000, NotSent: 10}, "[]"},
		{result{Requests: 1000, IDs: 999}, "[999 IDs, wanted 1000]"},
		{result{name: "one", Requests: 1000, IDs: 1000, Failed: 1}, "[load one: 1 requests failed]"},
		{result{name: "one", Requests: 1000, IDs: 1000, NotSent: 11}, "[load one: 11 requests were due and not sent, beside 1000: the node was too slow for it]"},
	} {
		if got := fmt.Sprint(missed(plan{ids: 1000}, []result{tt.r})); got != tt.want {
			t.Errorf("%s, want %s", got, tt.want)
		}
	}
}
