package cli

import (
	"io"
	"time"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/idlog"
	"github.com/leaf-idgen/leaf/segment"
)

// ParseIDs is parseIDs.
func ParseIDs(body []byte, count int) ([]leaf.Range, error) { return parseIDs(nil, body, count) }

// Histogram is histogram.
type Histogram struct{ h histogram }

// Add adds.
func (h *Histogram) Add(d time.Duration) { h.h.add(d) }

// Quantile returns a quantile.
func (h *Histogram) Quantile(q float64) time.Duration { return h.h.counts().quantile(q) }

// PrintRepairPlan is printRepairPlan.
func PrintRepairPlan(w io.Writer, p segment.RepairPlan) error { return printRepairPlan(w, p) }

// ProgressText is progressText.
func ProgressText(now idlog.Progress, took time.Duration) string { return progressText(now, took) }

// ShowProgress shows reports one after the other, on a terminal or not, and the end.
func ShowProgress(out io.Writer, terminal bool, reports ...idlog.Progress) {
	line := newProgressLine(out)
	line.terminal = line.terminal || terminal
	for _, now := range reports {
		line.show(now)
	}
	line.end()
}
