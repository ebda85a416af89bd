package sim

import (
	"time"

	"github.com/leaf-idgen/leaf/internal/sim/world"
)

// The kinds of faults that befall nodes as a whole.
const (
	Crash      world.Kind = "crash"
	CrashIO    world.Kind = "crash at an I/O boundary"
	CleanStop  world.Kind = "clean stop"
	Pause      world.Kind = "process paused"
	Suspend    world.Kind = "machine suspended"
	StepBack   world.Kind = "clock steps back"
	StepAhead  world.Kind = "clock steps ahead"
	ClockDrift world.Kind = "clock drifts"
	Freeze     world.Kind = "clock frozen"

	crashPlanned world.Kind = "crash at an I/O boundary planned"
)

// nodeFaults returns what the nemesis may do to any node.
func (w *World) nodeFaults() []fault {
	return []fault{
		{Crash, 4, w.onUp(func(n *Node) {
			n.Kill()
			w.restartLater(n)
		})},
		{crashPlanned, 6, w.onUp(func(n *Node) {
			p := n.Proc
			p.KillAt(1 + w.rng.IntN(40))
			w.sched.After(w.upTo(5*time.Minute), func() {
				if p.DiedAtBoundary() {
					w.took(CrashIO)
				}
				if n.Proc == p {
					n.Kill()
				}
				w.restartLater(n)
			})
		})},
		{CleanStop, 4, w.onUp(func(n *Node) { n.Stop(func() { w.restartLater(n) }) })},
		{Pause, 4, w.onUp(func(n *Node) { n.Proc.Pause(w.upTo(3 * time.Minute)) })},
		{Suspend, 2, w.onUp(func(n *Node) { n.Machine.Suspend(w.upTo(10 * time.Minute)) })},
		{StepBack, 4, w.onUp(func(n *Node) { n.Machine.Step(-w.step()) })},
		{StepAhead, 4, w.onUp(func(n *Node) { n.Machine.Step(w.step()) })},
		{ClockDrift, 2, w.onUp(func(n *Node) { n.Machine.Drift(int64(w.rng.IntN(20_001) - 10_000)) })},
		{Freeze, 2, w.onUp(func(n *Node) {
			n.Machine.Freeze()
			w.sched.After(w.upTo(5*time.Minute), n.Machine.Thaw)
		})},
	}
}

// onUp makes a strike on a random node that runs.
func (w *World) onUp(f func(n *Node)) func() bool {
	return func() bool {
		n := w.nodes[w.rng.IntN(len(w.nodes))]
		if !n.Up() {
			return false
		}
		f(n)
		return true
	}
}

// restartLater starts the node again, soon or after minutes.
func (w *World) restartLater(n *Node) {
	most := 2 * time.Second
	if w.rng.IntN(2) == 0 {
		most = 4 * time.Minute
	}
	w.sched.After(w.upTo(most), n.Start)
}

// upTo returns a random time below d.
func (w *World) upTo(d time.Duration) time.Duration { return time.Duration(w.rng.Int64N(int64(d))) }

// step returns how far a clock steps: milliseconds as often as an hour.
func (w *World) step() time.Duration {
	most := []time.Duration{10 * time.Millisecond, time.Second, 10 * time.Second, 2 * time.Minute, time.Hour}
	return 1 + w.upTo(most[w.rng.IntN(len(most))])
}
