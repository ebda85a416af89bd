package echo

import "time"

// stall is how long an echo must be late to count: nothing that a program does can make
// it so, only a machine that has too much to do.
const stall = 100 * time.Millisecond

// Machine is how well the machine served a run, and with it everything that the run
// measured. It is not safe for concurrent use.
type Machine struct {
	Worst time.Duration // the longest that an echo was late
	Lost  time.Duration // how long those were late that were late by more than 100 ms, in all
}

// Took counts an echo that has just come and was due then.
func (m *Machine) Took(due time.Time) {
	if late := time.Since(due); late > stall {
		m.Lost += late
		m.Worst = max(m.Worst, late)
	}
}

// Starved reports whether times measured in a run of that length mean nothing: its
// own echoes stood still for more than one part in two hundred.
func (m Machine) Starved(ran time.Duration) bool { return m.Lost*200 > ran }
