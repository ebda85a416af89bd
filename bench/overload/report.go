package main

import (
	"fmt"
	"io"
	"text/tabwriter"

	"github.com/leaf-idgen/leaf/bench/internal/report"
)

// tabulate writes the table of each part and what does not hold, and returns how many
// bounds that are.
func tabulate(w io.Writer, phases []phase, opt options) (broken int) {
	titles := map[string]string{
		partStore: fmt.Sprintf("store: each ID costs a load from MariaDB, %v away in each direction; %d tags in turn, requests at random moments", opt.delay, opt.tags),
		partCPU:   fmt.Sprintf("cpu: IDs in stock, %d tags in turn, one request under way per connection or caller; the median of %d turns", stockTags, opt.rounds),
	}
	peak := peaks(phases)
	for _, part := range opt.parts {
		fmt.Fprintf(w, "\n%s\n", titles[part])
		table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
		fmt.Fprintln(table, "protocol\tload\tasked/s\tIDs/s in time\tof the peak\tp50 ms\tp99 ms\tp99.9 ms\trejected\tp99 ms\tin vain\tunder way\tCPU\tRSS MB before\tpeak\tafter")
		for _, p := range phases {
			if p.part != part {
				continue
			}
			fmt.Fprintf(table, "%s\t%s\t%.0f\t%.0f\t%.2f\t%.1f\t%.1f\t%.1f\t%d\t%.1f\t%d\t%d\t%.2f\t%d\t%d\t%d\n", p.protocol, p.load,
				float64(p.asked)/opt.slice.Seconds(), p.goodput, p.goodput/peak[p.part+p.protocol],
				report.Millis(p.admitted.Quantile(0.5)), report.Millis(p.admitted.Quantile(0.99)), report.Millis(p.admitted.Quantile(0.999)),
				p.count[rejected], report.Millis(p.refusals.Quantile(0.99)), p.inVain(), p.most, p.cpu, p.before>>20, p.peak>>20, p.after>>20)
		}
		_ = table.Flush()
	}
	for _, p := range phases {
		if p.trouble != "" {
			fmt.Fprintf(w, "\n%s, %s, %s: %s", p.part, p.protocol, p.load, p.trouble)
		}
	}
	all := judge(phases, opt.slice)
	bad := brokenOnes(all)
	fmt.Fprintf(w, "\n%d of %d bounds hold\n", len(all)-len(bad), len(all))
	for _, f := range bad {
		fmt.Fprintf(w, "BROKEN  %s\n", f.text)
	}
	return len(bad)
}
