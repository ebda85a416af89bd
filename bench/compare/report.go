package main

import (
	"fmt"
	"io"
	"text/tabwriter"

	"github.com/leaf-idgen/leaf/bench/internal/report"
)

// tabulate writes a table for each load: medians, and leaf's requests per second beside
// those of each other server.
func tabulate(w io.Writer, p protocol, samples []sample) {
	for _, l := range p.loads {
		fmt.Fprintf(w, "\n%s, %s, medians\n", p.name, l.name)
		table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
		fmt.Fprintln(table, "server\treq/s\tleaf / it\tp50 us\tp99 us\tp99.9 us\tCPU us/req")
		leaf := of(samples, l.name, "leaf")
		for _, s := range p.servers {
			own := of(samples, l.name, s.name)
			fmt.Fprintf(table, "%s\t%.0f\t%s\t%.0f\t%.0f\t%.0f\t%.2f\n", s.name,
				report.Median(own, rate),
				verdict(report.Ratio(leaf, own, rate), l.targets[s.name]),
				report.Median(own, func(s sample) float64 { return report.Micros(s.p50) }),
				report.Median(own, func(s sample) float64 { return report.Micros(s.p99) }),
				report.Median(own, func(s sample) float64 { return report.Micros(s.p999) }),
				report.Median(own, func(s sample) float64 { return s.cpu }))
		}
		_ = table.Flush()
	}
}

// verdict is a ratio, and whether it is what it must be at least; 0: there is no target.
func verdict(got, want float64) string {
	switch {
	case want == 0:
		return fmt.Sprintf("%.3f", got)
	case got < want:
		return fmt.Sprintf("%.3f (at least %.2f: MISSED)", got, want)
	}
	return fmt.Sprintf("%.3f (at least %.2f: met)", got, want)
}

// list writes the raw samples.
func list(w io.Writer, samples []sample) {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "round\tload\tserver\treq/s\tp50 us\tp99 us\tp99.9 us\tCPU us/req")
	for _, s := range samples {
		fmt.Fprintf(table, "%d\t%s\t%s\t%.0f\t%.0f\t%.0f\t%.0f\t%.2f\n",
			s.round, s.load, s.server, s.rate, report.Micros(s.p50), report.Micros(s.p99), report.Micros(s.p999), s.cpu)
	}
	_ = table.Flush()
}

func of(samples []sample, load, server string) []sample {
	return report.Pick(samples, func(s sample) bool { return s.load == load && s.server == server })
}

func rate(s sample) float64 { return s.rate }
