package chaos

import (
	"context"
	"time"

	"github.com/leaf-idgen/leaf/internal/test/echo"
)

// stall is how long an echo inside the run must take to count: nothing that the
// program does can make it so, only a machine that has too much to do.
const stall = 100 * time.Millisecond

// Machine is how well the machine served the run itself, and with it everything.
type Machine struct {
	Worst time.Duration // the longest that an echo of the run took
	Lost  time.Duration // how long those took that were longer than 100 ms, in all
}

// watchMachine measures until ctx ends.
func watchMachine(ctx context.Context) (m Machine, err error) {
	err = echo.Watch(ctx, func(due time.Time) {
		if took := time.Since(due); took > stall {
			m.Lost += took
			m.Worst = max(m.Worst, took)
		}
	})
	return m, err
}

// starved reports whether times measured in a run of that length mean nothing: its
// own echoes stood still for more than one part in two hundred.
func (m Machine) starved(ran time.Duration) bool { return m.Lost*200 > ran }
