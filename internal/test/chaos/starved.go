package chaos

import (
	"context"
	"time"
)

// stall is how late a timer of our own must be to count: nothing that the program
// does can make it so, only a machine that has too much to do.
const stall = 100 * time.Millisecond

// Machine is how well the machine served the run itself, and with it everything.
type Machine struct {
	Worst time.Duration // the latest that a timer of the run was
	Lost  time.Duration // how late those were in all that were later than 100 ms
}

// watchMachine measures until ctx ends.
func watchMachine(ctx context.Context) Machine {
	var m Machine
	tick := 10 * time.Millisecond
	for {
		from := time.Now()
		if pause(ctx, tick) != nil {
			return m
		}
		if over := time.Since(from) - tick; over > stall {
			m.Lost += over
			m.Worst = max(m.Worst, over)
		}
	}
}

// starved reports whether times measured in a run of that length mean nothing: its
// own timers stood still for more than one part in two hundred.
func (m Machine) starved(ran time.Duration) bool { return m.Lost*200 > ran }
