package main

import (
	"fmt"
	"io"
	"text/tabwriter"

	"github.com/leaf-idgen/leaf/bench/report"
)

// tabulate writes the medians, the ratios against the targets, and the raw samples.
func tabulate(w io.Writer, contenders []contender, samples []sample, opt options) {
	for _, conns := range opt.conns {
		fmt.Fprintf(w, "\n%d connections, medians\n", conns)
		table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
		fmt.Fprintln(table, "server\treq/s\tx bare-net\tp50 us\tp99 us\tp99.9 us\tCPU us/req")
		for _, c := range contenders {
			own := of(samples, c.name, conns)
			fmt.Fprintf(table, "%s\t%.0f\t%.2f\t%.0f\t%.0f\t%.0f\t%.1f\n", c.name,
				report.Median(own, rate),
				ratio(samples, c.name, "bare-net", conns),
				report.Median(own, func(s sample) float64 { return report.Micros(s.p50) }),
				report.Median(own, func(s sample) float64 { return report.Micros(s.p99) }),
				report.Median(own, func(s sample) float64 { return report.Micros(s.p999) }),
				report.Median(own, func(s sample) float64 { return s.cpu }))
		}
		_ = table.Flush()
		report.Target(w, "leaf / bare-net ", ratio(samples, "leaf", "bare-net", conns), overNetHTTP)
		report.Target(w, "leaf / bare-fast", ratio(samples, "leaf", "bare-fast", conns), overBareFast)
	}

	fmt.Fprintln(w, "\nraw")
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "round\tconns\tserver\treq/s\tp50 us\tp99 us\tp99.9 us\tCPU us/req")
	for _, s := range samples {
		fmt.Fprintf(table, "%d\t%d\t%s\t%.0f\t%.0f\t%.0f\t%.0f\t%.1f\n", s.round, s.conns, s.server, s.rate, report.Micros(s.p50), report.Micros(s.p99), report.Micros(s.p999), s.cpu)
	}
	_ = table.Flush()
}

func of(samples []sample, server string, conns int) []sample {
	return report.Pick(samples, func(s sample) bool { return s.server == server && s.conns == conns })
}

// ratio is the median over the rounds of a's rate to b's in the same round.
func ratio(samples []sample, a, b string, conns int) float64 {
	return report.Ratio(of(samples, a, conns), of(samples, b, conns), rate)
}

func rate(s sample) float64 { return s.rate }
