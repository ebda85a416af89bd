package main

import (
	"fmt"
	"slices"
	"time"
)

// The bounds. A node that breaks one under overload is slower, larger or less useful
// than one that is merely busy.
const (
	// keeps is the part of its peak that the goodput keeps, by issue 5.
	keeps = 0.85

	// keepsCPU is the same for IDs in stock, where the load and the node share the cores: a
	// reply to one of 320 connections costs the kernel more than to one of 64. A redis-server
	// keeps 0.66 to 0.82 of its requests per second then (redis-benchmark -c 64 and -c 320,
	// 2 cores), so this bound tells a collapse, and no more.
	keepsCPU = 0.6

	// storeP99 bounds requests that wait for the store. The gate lets in as many
	// as are served within 250 ms (limit.target-wait) on average, and shrinks when the
	// last of them will wait for twice that. It looks every tenth of a second, and the
	// load itself takes its time: 500, 100 and 50 ms.
	storeP99 = 650 * time.Millisecond

	// cpuP99 bounds requests whose IDs are in stock: they may not take longer than the
	// mean of those who wait for a store that has too much to do.
	cpuP99 = 250 * time.Millisecond

	// memoryPerWaiting is what package limit says that one who waits costs, of whom there
	// are 10,000 at most (limit.max-waiting); memoryPerCaller is the goroutine and the
	// buffers of a connection, or of a call under way.
	memoryPerWaiting = 10 << 10
	maxWaiting       = 10_000
	memoryPerCaller  = 64 << 10

	// generated is the least part of the load that must have been generated for the
	// figures to mean anything.
	generated = 0.95
)

// finding is one bound, held or broken.
type finding struct {
	text  string
	holds bool
}

// peaks returns the highest goodput of each part and protocol.
func peaks(phases []phase) map[string]float64 {
	found := map[string]float64{}
	for _, p := range phases {
		found[p.part+p.protocol] = max(found[p.part+p.protocol], p.goodput)
	}
	return found
}

// judge compares the phases with the bounds. slice is the measured time of each.
func judge(phases []phase, slice time.Duration) (all []finding) {
	peak := peaks(phases)
	for _, p := range phases {
		of := fmt.Sprintf("%s, %s, %s: ", p.part, p.protocol, p.load)
		check := func(holds bool, format string, values ...any) {
			all = append(all, finding{of + fmt.Sprintf(format, values...), holds})
		}
		if asked := float64(p.asked) / slice.Seconds(); asked < generated*p.offered {
			check(false, "only %.0f of %.0f requests per second were sent: the machine is too busy to tell", asked, p.offered)
		}
		part := keeps
		if p.part == partCPU {
			part = keepsCPU
		}
		want := part * peak[p.part+p.protocol]
		if p.offered > 0 {
			want = min(want, part*p.offered)
		}
		check(p.goodput >= want, "%.0f IDs/s in time, at least %.0f", p.goodput, want)
		bound := storeP99
		if p.part == partCPU {
			bound = cpuP99
		}
		p99 := p.admitted.Quantile(0.99)
		check(p99 <= bound, "p99 of the admitted %v, at most %v", p99.Round(time.Millisecond), bound)
		most := p.before + maxWaiting*memoryPerWaiting + p.most*memoryPerCaller
		check(p.peak <= most, "memory %d MB, at most %d MB", p.peak>>20, most>>20)
		for _, never := range []struct {
			what  string
			count int64
		}{
			{"IDs that came twice", p.twice},
			{"requests rejected without a hint", p.noHint},
			{"broken requests", p.count[broken]},
		} {
			if never.count > 0 {
				check(false, "%d %s", never.count, never.what)
			}
		}
	}
	return all
}

// brokenOnes returns those that do not hold.
func brokenOnes(all []finding) []finding {
	return slices.DeleteFunc(slices.Clone(all), func(f finding) bool { return f.holds })
}
