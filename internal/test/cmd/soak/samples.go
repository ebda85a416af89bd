package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"text/tabwriter"
	"time"
)

// samples follows a node.
type samples struct {
	node  *node
	every time.Duration

	mu       sync.Mutex
	p50, p99 []time.Duration // of the seconds since the last sample
	all      []sample
}

// sample is what was seen at one moment, and the latencies since the one before.
type sample struct {
	at         time.Duration
	memory     float64 // resident bytes
	goroutines float64
	files      float64       // open descriptors
	cpu        float64       // seconds so far
	p50, p99   time.Duration // medians of the seconds
}

var latency = regexp.MustCompile(`p50 ([0-9.]+ m?s) .*p99 ([0-9.]+ m?s) `)

// note reads the latencies of one second from a progress line of leaf bench.
func (s *samples) note(line string) {
	m := latency.FindStringSubmatch(line)
	if m == nil {
		return
	}
	p50, err50 := time.ParseDuration(strings.ReplaceAll(m[1], " ", ""))
	p99, err99 := time.ParseDuration(strings.ReplaceAll(m[2], " ", ""))
	if err50 != nil || err99 != nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.p50, s.p99 = append(s.p50, p50), append(s.p99, p99)
}

// follow takes samples until ended is closed.
func (s *samples) follow(ctx context.Context, ended <-chan struct{}, begin time.Time) {
	tick := time.NewTicker(s.every)
	defer tick.Stop()
	for {
		select {
		case <-ended:
			return
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		values, err := scrape(ctx, s.node.url+"/metrics")
		if err != nil {
			fmt.Fprintln(os.Stderr, "soak: metrics:", err)
			continue
		}
		s.mu.Lock()
		n := sample{
			at: time.Since(begin), memory: values["process_resident_memory_bytes"], goroutines: values["go_goroutines"],
			files: values["process_open_fds"], cpu: values["process_cpu_seconds_total"], p50: median(s.p50), p99: median(s.p99),
		}
		s.p50, s.p99 = nil, nil
		s.all = append(s.all, n)
		s.mu.Unlock()
		if len(s.all)%6 == 0 {
			fmt.Fprintf(os.Stderr, "soak: %s\n", n)
		}
	}
}

func (n sample) String() string {
	return fmt.Sprintf("%6.0f s  %6.1f MiB  %4.0f goroutines  %3.0f descriptors  %6.0f s of CPU  p50 %v  p99 %v", n.at.Seconds(), n.memory/(1<<20), n.goroutines, n.files, n.cpu, n.p50, n.p99)
}

// scrape returns the samples of a metrics page that have no labels.
func scrape(ctx context.Context, url string) (map[string]float64, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, err
	}
	defer func() { _ = resp.Body.Close() }()
	values := map[string]float64{}
	for lines := bufio.NewScanner(resp.Body); lines.Scan(); {
		if name, text, ok := strings.Cut(lines.Text(), " "); ok {
			if v, err := strconv.ParseFloat(text, 64); err == nil {
				values[name] = v
			}
		}
	}
	return values, nil
}

func median[T interface{ ~int64 | ~float64 }](v []T) T {
	if len(v) == 0 {
		return 0
	}
	v = slices.Clone(v)
	slices.Sort(v)
	return v[len(v)/2]
}

// parts is into how many windows a run is divided.
const parts = 12

// window is the median of each value in one part of the run.
func (s *samples) window(i int) sample {
	warm := s.all[min(len(s.all), int(time.Minute/s.every)):] // caches fill at first
	part := warm[len(warm)*i/parts : len(warm)*(i+1)/parts]
	if len(part) == 0 {
		return sample{}
	}
	return sample{
		at: part[0].at, cpu: part[len(part)-1].cpu,
		memory:     median(each(part, func(n sample) float64 { return n.memory })),
		goroutines: median(each(part, func(n sample) float64 { return n.goroutines })),
		files:      median(each(part, func(n sample) float64 { return n.files })),
		p50:        median(each(part, func(n sample) time.Duration { return n.p50 })),
		p99:        median(each(part, func(n sample) time.Duration { return n.p99 })),
	}
}

func each[T any](part []sample, f func(sample) T) []T {
	var all []T
	for _, n := range part {
		all = append(all, f(n))
	}
	return all
}

func (s *samples) print(out io.Writer) {
	t := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "from\tmemory, MiB\tgoroutines\tdescriptors\tCPU so far, s\tp50\tp99\t")
	for i := range parts {
		w := s.window(i)
		fmt.Fprintf(t, "%v\t%.1f\t%.0f\t%.0f\t%.0f\t%v\t%v\t\n", w.at.Round(time.Second), w.memory/(1<<20), w.goroutines, w.files, w.cpu, w.p50, w.p99)
	}
	_ = t.Flush()
	fmt.Fprintf(out, "medians of %d samples, one each %v, without the first minute\n\n", len(s.all), s.every)
}

// grew compares the last quarter of the run with the first one. Memory may move by what
// the garbage collector leaves, latency by what else the machine does. None of them is
// ever 0: then nobody measured it, and it is not flat.
func (s *samples) grew() (what []string) {
	if len(s.all) < 2*parts {
		return []string{fmt.Sprintf("only %d samples: nothing can be said", len(s.all))}
	}
	quarter := func(from int, f func(sample) float64) float64 {
		var v []float64
		for i := range parts / 4 {
			v = append(v, f(s.window(from+i)))
		}
		return median(v)
	}
	for _, q := range []struct {
		name         string
		times, extra float64
		of           func(sample) float64
	}{
		{"resident memory, bytes", 1.2, 8 << 20, func(n sample) float64 { return n.memory }},
		{"goroutines", 1.1, 5, func(n sample) float64 { return n.goroutines }},
		{"descriptors", 1.1, 5, func(n sample) float64 { return n.files }},
		{"p50, ns", 1.5, 5e5, func(n sample) float64 { return float64(n.p50) }},
		{"p99, ns", 2, 5e6, func(n sample) float64 { return float64(n.p99) }},
	} {
		first, last := quarter(0, q.of), quarter(parts-parts/4, q.of)
		switch {
		case first <= 0 || last <= 0:
			what = append(what, q.name+": not measured")
		case last > first*q.times+q.extra:
			what = append(what, fmt.Sprintf("%s: from %.0f to %.0f", q.name, first, last))
		}
	}
	return what
}

// describe prints where and on what this runs.
func describe(ctx context.Context, out io.Writer, p plan) {
	say := func(name string, args ...string) {
		if text, err := exec.CommandContext(ctx, name, args...).Output(); err == nil {
			fmt.Fprintln(out, strings.TrimSpace(string(text)))
		}
	}
	fmt.Fprintln(out, time.Now().UTC().Format("2006-01-02 15:04 UTC"))
	say("uname", "-srm")
	say("sh", "-c", "grep -m1 'model name' /proc/cpuinfo; cat /proc/loadavg")
	fmt.Fprintln(out, runtime.NumCPU(), "processors,", runtime.Version())
	say("git", "log", "-1", "--format=commit %H")
	say(p.leaf, "version")
	if p.quota > 0 {
		fmt.Fprintf(out, "the node may use %.2f processors (control group)\n", p.quota)
	}
	fmt.Fprintln(out)
}
