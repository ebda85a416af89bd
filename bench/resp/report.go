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
	commit := firstLine(ctx, "git", "describe", "--always", "--dirty", "--exclude=*")
	cpu := "unknown CPU"
	if data, err := os.ReadFile("/proc/cpuinfo"); err == nil {
		for line := range strings.SplitSeq(string(data), "\n") {
			if name, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(name) == "model name" {
				cpu = strings.TrimSpace(value)
				break
			}
		}
	}
	return fmt.Sprintf("bench/resp %s, commit %s, %s %s/%s, %d x %s\n%s\nredis-benchmark with %d connections on the same machine, INCR, %d rounds of about %v",
		time.Now().Format("2006-01-02 15:04"), commit, runtime.Version(), runtime.GOOS, runtime.GOARCH, runtime.NumCPU(), cpu,
		firstLine(ctx, "redis-server", "--version"), opt.conns, opt.rounds, opt.slice)
}

func firstLine(ctx context.Context, name string, arg ...string) string {
	out, err := exec.CommandContext(ctx, name, arg...).Output()
	if err != nil {
		return "unknown"
	}
	line, _, _ := strings.Cut(string(out), "\n")
	return strings.TrimSpace(line)
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
func report(w io.Writer, samples []sample, opt options) {
	for _, pipeline := range opt.pipelines {
		fmt.Fprintf(w, "\n%d in flight per connection, medians\n", pipeline)
		table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
		fmt.Fprintln(table, "server\treq/s\tp50 ms\tp99 ms\tCPU us/req")
		for _, server := range []string{"leaf", "redis"} {
			own := of(samples, server, pipeline)
			fmt.Fprintf(table, "%s\t%.0f\t%.3f\t%.3f\t%.2f\n", server,
				median(own, func(s sample) float64 { return s.rate }),
				median(own, func(s sample) float64 { return s.p50 }),
				median(own, func(s sample) float64 { return s.p99 }),
				median(own, func(s sample) float64 { return s.cpu }))
		}
		_ = table.Flush()
		got := ratio(samples, pipeline)
		want, ok := targets[pipeline]
		switch {
		case !ok:
			fmt.Fprintf(w, "leaf / redis = %.3f\n", got)
		case got < want:
			fmt.Fprintf(w, "leaf / redis = %.3f, target at least %.2f: MISSED\n", got, want)
		default:
			fmt.Fprintf(w, "leaf / redis = %.3f, target at least %.2f: met\n", got, want)
		}
	}

	fmt.Fprintln(w, "\nraw")
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "round\tin flight\tserver\treq/s\tp50 ms\tp99 ms\tCPU us/req")
	for _, s := range samples {
		fmt.Fprintf(table, "%d\t%d\t%s\t%.0f\t%.3f\t%.3f\t%.2f\n", s.round, s.pipeline, s.server, s.rate, s.p50, s.p99, s.cpu)
	}
	_ = table.Flush()
}

func of(samples []sample, server string, pipeline int) []sample {
	return slices.DeleteFunc(slices.Clone(samples), func(s sample) bool { return s.server != server || s.pipeline != pipeline })
}

// ratio is the median over the rounds of leaf's rate to that of redis in the same round.
func ratio(samples []sample, pipeline int) float64 {
	ours, theirs := of(samples, "leaf", pipeline), of(samples, "redis", pipeline)
	var rounds []sample
	for i := range ours {
		rounds = append(rounds, sample{rate: ours[i].rate / theirs[i].rate})
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
