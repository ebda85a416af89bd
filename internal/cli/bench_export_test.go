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
