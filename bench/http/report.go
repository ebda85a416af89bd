package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
)

// describe says where and how the measurement was taken.
func describe(ctx context.Context, opt options) string {
	commit := "unknown"
	if out, err := exec.CommandContext(ctx, "git", "describe", "--always", "--dirty", "--exclude=*").Output(); err == nil {
		commit = strings.TrimSpace(string(out))
	}
	cpu := "unknown CPU"
	if data, err := os.ReadFile("/proc/cpuinfo"); err == nil {
		for line := range strings.SplitSeq(string(data), "\n") {
			if name, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(name) == "model name" {
				cpu = strings.TrimSpace(value)
				break
			}
		}
	}
	return fmt.Sprintf("bench/http %s, commit %s, %s %s/%s, %d x %s\nwrk with %d threads on the same machine, %d rounds of %v",
		time.Now().Format("2006-01-02 15:04"), commit, runtime.Version(), runtime.GOOS, runtime.GOARCH, runtime.NumCPU(), cpu,
		opt.threads, opt.rounds, opt.slice)
}

// machine returns the load averages.
func machine() string {
	data, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return "unknown"
	}
	return strings.TrimSpace(string(data))
}

// report writes the medians, the ratios against the targets, and the raw samples.
func report(w io.Writer, contenders []contender, samples []sample, opt options) {
	for _, conns := range opt.conns {
		fmt.Fprintf(w, "\n%d connections, medians\n", conns)
		table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
		fmt.Fprintln(table, "server\treq/s\tx bare-net\tp50 us\tp99 us\tCPU us/req")
		for _, c := range contenders {
			own := of(samples, c.name, conns)
			fmt.Fprintf(table, "%s\t%.0f\t%.2f\t%.0f\t%.0f\t%.1f\n", c.name,
				median(own, func(s sample) float64 { return s.rate }),
				ratio(samples, c.name, "bare-net", conns),
				median(own, func(s sample) float64 { return micros(s.p50) }),
				median(own, func(s sample) float64 { return micros(s.p99) }),
				median(own, func(s sample) float64 { return s.cpu }))
		}
		_ = table.Flush()
		target(w, "leaf / bare-net ", ratio(samples, "leaf", "bare-net", conns), overNetHTTP)
		target(w, "leaf / bare-fast", ratio(samples, "leaf", "bare-fast", conns), overBareFast)
	}

	fmt.Fprintln(w, "\nraw")
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "round\tconns\tserver\treq/s\tp50 us\tp99 us\tCPU us/req")
	for _, s := range samples {
		fmt.Fprintf(table, "%d\t%d\t%s\t%.0f\t%.0f\t%.0f\t%.1f\n", s.round, s.conns, s.server, s.rate, micros(s.p50), micros(s.p99), s.cpu)
	}
	_ = table.Flush()
}

func target(w io.Writer, name string, got, want float64) {
	verdict := "met"
	if got < want {
		verdict = "MISSED"
	}
	fmt.Fprintf(w, "%s = %.3f, target at least %.2f: %s\n", name, got, want, verdict)
}

func of(samples []sample, server string, conns int) []sample {
	return slices.DeleteFunc(slices.Clone(samples), func(s sample) bool { return s.server != server || s.conns != conns })
}

// ratio is the median over the rounds of a's rate to b's in the same round.
func ratio(samples []sample, a, b string, conns int) float64 {
	as, bs := of(samples, a, conns), of(samples, b, conns)
	var rounds []sample
	for i := range as {
		rounds = append(rounds, sample{rate: as[i].rate / bs[i].rate})
	}
	return median(rounds, func(s sample) float64 { return s.rate })
}

func median(samples []sample, value func(sample) float64) float64 {
	values := make([]float64, 0, len(samples))
	for _, s := range samples {
		values = append(values, value(s))
	}
	slices.Sort(values)
	n := len(values)
	return (values[(n-1)/2] + values[n/2]) / 2
}

func micros(d time.Duration) float64 { return float64(d) / float64(time.Microsecond) }
