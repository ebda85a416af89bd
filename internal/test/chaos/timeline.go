package chaos

import (
	"fmt"
	"math"
	"strings"
	"time"
)

// The measures of a timeline, in units of its drawing.
const (
	plotLeft   = 220.0 // the names stand before it
	plotWidth  = 900.0
	rowHeight  = 15.0
	axisHeight = 22.0
	chart      = 54.0 // height of one chart
	gap        = 14.0
)

// timeline is the drawing of one run: a row for each kind of fault that came, and
// below, for each node, requests and latencies.
type timeline struct {
	Width, Height, Left, Right float64
	Rows                       []timelineRow
	Bands                      []band // behind the charts
	Ticks                      []tick
	AxisY, ChartsY, ChartsEnd  float64
	Nodes                      []nodeChart
}

type timelineRow struct {
	Y, TextY float64
	Name     string
	Bars     []band
}

type band struct {
	X, Y, W, H float64
	Pair       bool
	Title      string
}

type tick struct {
	X    float64
	Text string
}

type nodeChart struct {
	Name                         string
	RateY, LatencyY, H           float64
	RateText, LatencyText        float64 // where the names stand
	Most                         string  // the top of the scale
	OK, Late, Failed             string  // areas
	P50, P99, Max                string  // lines
	Levels                       []level
	RateBottom, LatencyBottom    float64
	AnyFailed, AnyLate, AnyReply bool
}

type level struct {
	Y    float64
	Text string
}

// newTimeline computes the drawing of a report.
func newTimeline(r *Report) timeline {
	t := timeline{Width: plotLeft + plotWidth + 24, Left: plotLeft, Right: plotLeft + plotWidth}
	ran := max(r.Ran, time.Second)
	x := func(at time.Duration) float64 { return tenth(plotLeft + plotWidth*float64(at)/float64(ran)) }
	bar := func(e Event, y, h float64) band {
		from, to := x(e.Begin), x(e.Healed)
		title := fmt.Sprintf("%s, from %.1f s for %.1f s, all served %.2f s after", e, e.Begin.Seconds(), (e.Healed - e.Begin).Seconds(), (e.Green - e.Healed).Seconds())
		return band{X: from, Y: y, W: max(2, tenth(to-from)), H: h, Pair: e.Pair, Title: title}
	}

	y := 4.0
	for _, k := range r.Kinds {
		row := timelineRow{Y: y, TextY: y + 11, Name: k.Name}
		for _, e := range r.Events {
			if e.Fault == k.Name {
				row.Bars = append(row.Bars, bar(e, y+2, rowHeight-4))
			}
		}
		if row.Bars == nil {
			continue
		}
		t.Rows = append(t.Rows, row)
		y += rowHeight
	}
	t.AxisY = y + 2
	for _, s := range ticks(ran) {
		t.Ticks = append(t.Ticks, tick{x(s), fmt.Sprintf("%d s", int(s.Seconds()))})
	}
	y += axisHeight
	t.ChartsY = y
	for _, n := range r.Series.Nodes {
		t.Nodes = append(t.Nodes, chartOf(n, r.Series.Bucket, y, ran, x))
		y += 2*(chart+gap) + 6
	}
	t.ChartsEnd = y - gap
	for _, e := range r.Events {
		t.Bands = append(t.Bands, bar(e, t.ChartsY, t.ChartsEnd-t.ChartsY))
	}
	t.Height = y
	return t
}

// chartOf draws the two charts of one node.
func chartOf(n NodeSeries, bucket time.Duration, y float64, ran time.Duration, x func(time.Duration) float64) nodeChart {
	c := nodeChart{
		Name: n.Name, H: chart, RateY: y, LatencyY: y + chart + gap,
		RateText: y + chart/2, LatencyText: y + chart + gap + chart/2,
		RateBottom: y + chart, LatencyBottom: y + 2*chart + gap,
	}
	// The last bucket is not full: it would show as a fall that was none.
	buckets := n.Buckets[:min(len(n.Buckets), int(ran/bucket))]
	most := 1
	for _, b := range buckets {
		most = max(most, b.OK+b.Late+b.Failed)
		c.AnyFailed = c.AnyFailed || b.Failed > 0
		c.AnyLate = c.AnyLate || b.Late > 0
		c.AnyReply = c.AnyReply || b.Max > 0
	}
	c.Most = fmt.Sprintf("%.0f/s", float64(most)/bucket.Seconds())
	height := func(count int) float64 { return tenth(c.RateBottom - chart*float64(count)/float64(most)) }
	// Each area reaches down to 0 and hides part of the one before it.
	end := x(time.Duration(len(buckets)) * bucket)
	area := func(of func(Bucket) int) string {
		line := steps(len(buckets), func(i int) (float64, float64, bool) {
			return x(time.Duration(i) * bucket), height(of(buckets[i])), true
		}, end)
		return fmt.Sprintf("%sV%gH%gZ", line, c.RateBottom, x(0))
	}
	c.OK = area(func(b Bucket) int { return b.Failed + b.Late + b.OK })
	if c.AnyLate {
		c.Late = area(func(b Bucket) int { return b.Failed + b.Late })
	}
	if c.AnyFailed {
		c.Failed = area(func(b Bucket) int { return b.Failed })
	}

	// Latency is drawn on a logarithmic scale from 0.1 ms to 10 s.
	const lowest, decades = 100 * time.Microsecond, 5
	latency := func(d time.Duration) float64 {
		share := math.Log10(float64(max(d, lowest))/float64(lowest)) / decades
		return tenth(c.LatencyBottom - chart*min(1, share))
	}
	for _, d := range []time.Duration{time.Millisecond, 100 * time.Millisecond, 10 * time.Second} {
		c.Levels = append(c.Levels, level{latency(d), d.String()})
	}
	line := func(of func(Bucket) time.Duration) string {
		return steps(len(buckets), func(i int) (float64, float64, bool) {
			return x(time.Duration(i) * bucket), latency(of(buckets[i])), buckets[i].OK+buckets[i].Late > 0
		}, end)
	}
	c.P50 = line(func(b Bucket) time.Duration { return b.P50 })
	c.P99 = line(func(b Bucket) time.Duration { return b.P99 })
	c.Max = line(func(b Bucket) time.Duration { return b.Max })
	return c
}

// steps draws n steps from one x to the next, the last one to end, with a gap where
// there is nothing. Steps of one height are one.
func steps(n int, at func(i int) (x, y float64, some bool), end float64) string {
	var b strings.Builder
	drawing, height := false, 0.0
	for i := range n {
		x, y, some := at(i)
		switch {
		case drawing && !some:
			fmt.Fprintf(&b, "H%g", x)
		case !drawing && some:
			fmt.Fprintf(&b, "M%g %g", x, y)
		case drawing && y != height:
			fmt.Fprintf(&b, "H%gV%g", x, y)
		}
		drawing, height = some, y
	}
	if drawing {
		fmt.Fprintf(&b, "H%g", end)
	}
	return b.String()
}

// ticks are at most a dozen round times.
func ticks(ran time.Duration) []time.Duration {
	step := time.Second
	for _, s := range []int{1, 2, 5, 10, 20, 30, 60, 120, 300, 600, 1200, 1800, 3600} {
		step = time.Duration(s) * time.Second
		if ran/step <= 12 {
			break
		}
	}
	var all []time.Duration
	for at := time.Duration(0); at <= ran; at += step {
		all = append(all, at)
	}
	return all
}

func tenth(x float64) float64 { return math.Round(x*10) / 10 }
