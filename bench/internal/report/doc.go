// Package report writes down a measurement the way all programs of bench do: a head that
// says where and how it was taken, medians, and a file beside what the terminal shows.
package report
