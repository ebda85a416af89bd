package main

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"
)

var (
	rateLine    = regexp.MustCompile(`throughput summary: ([\d.]+) requests per second`)
	summaryLine = regexp.MustCompile(`avg\s+min\s+p50\s+p95\s+p99\s+max\s+[\d.]+\s+[\d.]+\s+([\d.]+)\s+[\d.]+\s+([\d.]+)\s+[\d.]+`)
	stepLine    = regexp.MustCompile(`(?m)^([\d.]+)% <= ([\d.]+) milliseconds \(cumulative count \d+\)$`)
)

// parseReport reads redis-benchmark's long report, because the short one (--csv) ends
// with p99. It ends by itself at the first error reply, so a report means that all were
// answered.
func parseReport(out string) (s sample, err error) {
	rate, summary := rateLine.FindStringSubmatch(out), summaryLine.FindStringSubmatch(out)
	if rate == nil || summary == nil {
		return s, errors.New("no throughput, or no p50 and p99")
	}
	tail := ""
	for _, step := range stepLine.FindAllStringSubmatch(out, -1) {
		part, err := strconv.ParseFloat(step[1], 64)
		if err != nil {
			return s, err
		}
		if part >= 99.9 { // the first table comes in steps of 99.805, 99.902, 99.951 %
			tail = step[2]
			break
		}
	}
	if tail == "" {
		return s, errors.New("no step of 99.9 % or more")
	}
	for _, figure := range []struct {
		text string
		into *float64
	}{{rate[1], &s.rate}, {summary[1], &s.p50}, {summary[2], &s.p99}, {tail, &s.p999}} {
		if *figure.into, err = strconv.ParseFloat(figure.text, 64); err != nil {
			return s, fmt.Errorf("%q is no number: %w", figure.text, err)
		}
	}
	return s, nil
}
