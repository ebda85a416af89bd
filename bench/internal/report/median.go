package report

import (
	"slices"
	"time"
)

// Median returns the median of a value of samples, of which there must be some.
func Median[S any](samples []S, value func(S) float64) float64 {
	values := make([]float64, 0, len(samples))
	for _, s := range samples {
		values = append(values, value(s))
	}
	slices.Sort(values)
	n := len(values)
	return (values[(n-1)/2] + values[n/2]) / 2
}

// Ratio returns the median of a's value to that of b in the same round: both have one
// sample per round, in the order of the rounds. Whatever else the machine does in a round
// hits both.
func Ratio[S any](a, b []S, value func(S) float64) float64 {
	ratios := make([]float64, 0, len(a))
	for i := range a {
		ratios = append(ratios, value(a[i])/value(b[i]))
	}
	return Median(ratios, func(r float64) float64 { return r })
}

// Pick returns the samples that match.
func Pick[S any](samples []S, match func(S) bool) []S {
	return slices.DeleteFunc(slices.Clone(samples), func(s S) bool { return !match(s) })
}

// Micros returns a duration in microseconds.
func Micros(d time.Duration) float64 { return float64(d) / float64(time.Microsecond) }

// Millis returns a duration in milliseconds.
func Millis(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
