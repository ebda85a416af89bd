package sched

import (
	"fmt"
	"io"
	"time"
)

// trace is the record of a simulation: a hash of every decision, and a text for
// the reader who replays a seed.
type trace struct {
	hash     uint64
	notes    int
	out      io.Writer // nil: no text
	machines []*Machine
}

// Hash returns a hash of all decisions and notes so far.
func (t *trace) Hash() uint64 { return t.hash }

// Notes returns how many notes there were so far.
func (t *trace) Notes() int { return t.notes }

// Log writes a line per note to w from now on; nil ends it.
func (t *trace) Log(w io.Writer) { t.out = w }

// mix adds two words to the hash (the mixing step of MurmurHash3's finalizer).
func (t *trace) mix(a, b uint64) {
	h := t.hash ^ a*0x9e3779b97f4a7c15
	h ^= b + 0x2545f4914f6cdd1d + h<<6 + h>>2
	h ^= h >> 33
	h *= 0xff51afd7ed558ccd
	h ^= h >> 33
	t.hash = h
}

// Note records an event: it becomes part of the hash and, with Log, a line. what is a
// constant text; args are formatted for the line only, so whatever should count in
// the hash must be among the numbers.
func (s *Scheduler) Note(who, what string, numbers ...int64) {
	s.notes++
	for _, text := range [...]string{who, what} {
		for i := range len(text) {
			s.hash = (s.hash ^ uint64(text[i])) * 0x100000001b3
		}
	}
	for _, n := range numbers {
		s.mix(uint64(n), uint64(s.now))
	}
	if s.out != nil {
		_, _ = fmt.Fprintf(s.out, "%-14v %-10s %s %v\n", s.now.Round(time.Microsecond), who, what, numbers)
	}
}
