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
	return fmt.Sprintf("bench/grpc %s, commit %s, %s %s/%s, %d x %s\n%d connections from the same machine, %d rounds of %v",
		time.Now().Format("2006-01-02 15:04"), commit, runtime.Version(), runtime.GOOS, runtime.GOARCH, runtime.NumCPU(), cpu,
		opt.conns, opt.rounds, opt.slice)
}

// load returns the load averages.
func load() string {
	data, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return "unknown"
	}
	return strings.TrimSpace(string(data))
}

// report writes the medians, the ratios, and the raw samples.
func report(w io.Writer, samples []sample) {
	for _, shape := range shapes {
		for _, count := range counts {
			title := fmt.Sprintf("%d callers", shape.workers)
			if shape.flight > 0 {
				title = fmt.Sprintf("%d streams, %d in flight on each", shape.workers, shape.flight)
			}
			fmt.Fprintf(w, "\n%s (%s), %d per request, medians\n", shape.name, title, count)
			table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
			fmt.Fprintln(table, "server\treq/s\tIDs/s\tp50 us\tp99 us\tp99.9 us\tCPU us/req")
			for _, server := range servers {
				own := of(samples, server, shape.name, count)
				rate := median(own, func(s sample) float64 { return s.rate })
				fmt.Fprintf(table, "%s\t%.0f\t%.0f\t%.0f\t%.0f\t%.0f\t%.2f\n", server, rate, rate*float64(count),
					median(own, func(s sample) float64 { return us(s.p50) }),
					median(own, func(s sample) float64 { return us(s.p99) }),
					median(own, func(s sample) float64 { return us(s.p999) }),
					median(own, func(s sample) float64 { return s.cpu }))
			}
			_ = table.Flush()
			fmt.Fprintf(w, "leaf / bare = %.3f\n", ratio(samples, shape.name, count))
		}
	}

	fmt.Fprintln(w, "\nraw")
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "round\tshape\tIDs\tserver\treq/s\tp50 us\tp99 us\tp99.9 us\tCPU us/req")
	for _, s := range samples {
		fmt.Fprintf(table, "%d\t%s\t%d\t%s\t%.0f\t%.0f\t%.0f\t%.0f\t%.2f\n",
			s.round, s.shape, s.count, s.server, s.rate, us(s.p50), us(s.p99), us(s.p999), s.cpu)
	}
	_ = table.Flush()
}

func us(d time.Duration) float64 { return float64(d) / float64(time.Microsecond) }

func of(samples []sample, server, shape string, count int32) []sample {
	return slices.DeleteFunc(slices.Clone(samples), func(s sample) bool {
		return s.server != server || s.shape != shape || s.count != count
	})
}

// ratio is the median over the rounds of leaf's rate to that of bare in the same round.
func ratio(samples []sample, shape string, count int32) float64 {
	ours, theirs := of(samples, servers[0], shape, count), of(samples, servers[1], shape, count)
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
