package main

import (
	"fmt"
	"io"
	"text/tabwriter"

	"github.com/leaf-idgen/leaf/bench/report"
)

// tabulate writes the medians, the ratios against the targets, and the raw samples.
func tabulate(w io.Writer, samples []sample, opt options) {
	for _, pipeline := range opt.pipelines {
		fmt.Fprintf(w, "\n%d in flight per connection, medians\n", pipeline)
		table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
		fmt.Fprintln(table, "server\treq/s\tp50 ms\tp99 ms\tp99.9 ms\tCPU us/req")
		for _, server := range []string{"leaf", "redis"} {
			own := of(samples, server, pipeline)
			fmt.Fprintf(table, "%s\t%.0f\t%.3f\t%.3f\t%.3f\t%.2f\n", server,
				report.Median(own, rate),
				report.Median(own, func(s sample) float64 { return s.p50 }),
				report.Median(own, func(s sample) float64 { return s.p99 }),
				report.Median(own, func(s sample) float64 { return s.p999 }),
				report.Median(own, func(s sample) float64 { return s.cpu }))
		}
		_ = table.Flush()
		if want, ok := targets[pipeline]; ok {
			report.Target(w, "leaf / redis", ratio(samples, pipeline), want)
		} else {
			fmt.Fprintf(w, "leaf / redis = %.3f\n", ratio(samples, pipeline))
		}
	}

	fmt.Fprintln(w, "\nraw")
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "round\tin flight\tserver\treq/s\tp50 ms\tp99 ms\tp99.9 ms\tCPU us/req")
	for _, s := range samples {
		fmt.Fprintf(table, "%d\t%d\t%s\t%.0f\t%.3f\t%.3f\t%.3f\t%.2f\n", s.round, s.pipeline, s.server, s.rate, s.p50, s.p99, s.p999, s.cpu)
	}
	_ = table.Flush()
}

func of(samples []sample, server string, pipeline int) []sample {
	return report.Pick(samples, func(s sample) bool { return s.server == server && s.pipeline == pipeline })
}

// ratio is the median over the rounds of leaf's rate to that of redis in the same round.
func ratio(samples []sample, pipeline int) float64 {
	return report.Ratio(of(samples, "leaf", pipeline), of(samples, "redis", pipeline), rate)
}

func rate(s sample) float64 { return s.rate }
