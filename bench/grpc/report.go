package main

import (
	"fmt"
	"io"
	"text/tabwriter"

	"github.com/leaf-idgen/leaf/bench/report"
)

// tabulate writes the medians, the ratios, and the raw samples.
func tabulate(w io.Writer, samples []sample) {
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
				perSecond := report.Median(own, rate)
				fmt.Fprintf(table, "%s\t%.0f\t%.0f\t%.0f\t%.0f\t%.0f\t%.2f\n", server, perSecond, perSecond*float64(count),
					report.Median(own, func(s sample) float64 { return report.Micros(s.p50) }),
					report.Median(own, func(s sample) float64 { return report.Micros(s.p99) }),
					report.Median(own, func(s sample) float64 { return report.Micros(s.p999) }),
					report.Median(own, func(s sample) float64 { return s.cpu }))
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
			s.round, s.shape, s.count, s.server, s.rate, report.Micros(s.p50), report.Micros(s.p99), report.Micros(s.p999), s.cpu)
	}
	_ = table.Flush()
}

func of(samples []sample, server, shape string, count int32) []sample {
	return report.Pick(samples, func(s sample) bool { return s.server == server && s.shape == shape && s.count == count })
}

// ratio is the median over the rounds of leaf's rate to that of bare in the same round.
func ratio(samples []sample, shape string, count int32) float64 {
	return report.Ratio(of(samples, servers[0], shape, count), of(samples, servers[1], shape, count), rate)
}

func rate(s sample) float64 { return s.rate }
