package sched

import (
	"math"
	"slices"
	"time"
)

// Machine is a computer: its clocks, and the processes that run on it one after the
// other or, if its disk was copied, at once. All its methods act on the true
// time of the moment.
type Machine struct {
	s     *Scheduler
	name  string
	lives []*Process // those that are not dead
	boots int

	// The oscillator: since true time from, mono and boot run at 1+ppm/1e6.
	born time.Duration // true time of NewMachine
	from time.Duration
	mono time.Duration // what the monotonic clock showed at from
	boot time.Duration // the same, with the time in which the machine was suspended
	ppm  int64

	wall   time.Time     // wall clock at mono 0, without steps
	step   time.Duration // sum of all steps
	moved  time.Duration // true time of the last step
	steps  []clockStep
	asleep time.Duration // suspended until then
	frozen *time.Time    // what the wall clock shows while it stands still
}

// NewMachine returns a machine whose wall clock shows wall now.
func (s *Scheduler) NewMachine(name string, wall time.Time) *Machine {
	m := &Machine{s: s, name: name, born: s.now, from: s.now, wall: wall.Round(0)}
	s.machines = append(s.machines, m)
	return m
}

// Name returns the name.
func (m *Machine) Name() string { return m.name }

// run returns what mono has advanced by since from.
func (m *Machine) run() time.Duration {
	d := m.s.now - m.from
	return d + d*time.Duration(m.ppm)/1_000_000
}

// Monotonic returns the reading of the monotonic clock, which stands still while the
// machine is suspended.
func (m *Machine) Monotonic() time.Duration { return m.mono + m.run() }

// Elapsed is Monotonic plus the time in which the machine was suspended.
func (m *Machine) Elapsed() time.Duration { return m.boot + m.run() }

// Wall returns the wall clock, without a monotonic reading.
func (m *Machine) Wall() time.Time {
	if m.frozen != nil {
		return *m.frozen
	}
	return m.wall.Add(m.Elapsed() + m.step)
}

// Step moves the wall clock by d.
func (m *Machine) Step(d time.Duration) {
	m.s.Note(m.name, "clock steps", int64(d))
	m.steps = append(m.steps, clockStep{m.s.now, m.Offset()})
	m.step += d
	if d.Abs() > smallStep {
		m.moved = m.s.now
	}
	if m.frozen != nil {
		f := m.frozen.Add(d)
		m.frozen = &f
	}
}

// Steps returns how often the wall clock was stepped.
func (m *Machine) Steps() int { return len(m.steps) }

// smallStep is a step that a node takes for drift: the default of snowflake.clock-jump.
const smallStep = 10 * time.Second

// Stood returns for how long the wall clock was not stepped by more than 10 s.
func (m *Machine) Stood() time.Duration { return m.s.now - m.moved }

// Offset returns how far the wall clock is ahead of that of a machine which started
// with the same time and was never touched.
func (m *Machine) Offset() time.Duration {
	return m.Wall().Sub(m.wall) - (m.s.now - m.born)
}

// clockStep is a step of the wall clock, with the offset that it ended.
type clockStep struct {
	at     time.Duration
	before time.Duration
}

// Lowest returns the lowest Offset between two moments of the true time, as steps
// made it: drift, and a clock that stood still, count up to the next step.
func (m *Machine) Lowest(from, to time.Duration) time.Duration {
	offset, lowest := m.Offset(), time.Duration(math.MaxInt64)
	for _, s := range slices.Backward(m.steps) {
		if s.at <= to {
			lowest = min(lowest, offset)
		}
		if s.at <= from {
			return lowest
		}
		offset = s.before
	}
	return min(lowest, offset)
}

// Drift makes all clocks of the machine run at 1+ppm/1e6 of the true time from now on;
// |ppm| is at most 100,000.
func (m *Machine) Drift(ppm int64) {
	m.s.Note(m.name, "clock drifts", ppm)
	m.settle()
	m.ppm = max(-100_000, min(ppm, 100_000))
}

func (m *Machine) settle() {
	d := m.run()
	m.mono, m.boot, m.from = m.mono+d, m.boot+d, m.s.now
}

// Freeze stops the wall clock; Thaw lets it go on from where it stands, so that it is
// behind from then on.
func (m *Machine) Freeze() {
	if m.frozen == nil {
		m.s.Note(m.name, "clock freezes")
		w := m.Wall()
		m.frozen = &w
	}
}

// Thaw ends a Freeze.
func (m *Machine) Thaw() {
	if m.frozen == nil {
		return
	}
	w := *m.frozen
	m.frozen = nil
	m.step += w.Sub(m.Wall())
	m.s.Note(m.name, "clock thaws", int64(m.step))
}

// Suspend stops the machine for d, as closing a laptop does: nothing runs, the
// monotonic clock and all timers stand still, the wall clock goes on.
func (m *Machine) Suspend(d time.Duration) {
	m.s.Note(m.name, "suspended", int64(d))
	more := m.s.now + d - max(m.s.now, m.asleep) // it may be asleep already
	if more <= 0 {
		return
	}
	m.asleep = m.s.now + d
	m.settle()
	m.mono -= more // by the time the machine wakes up it has gained that, and should not have
	m.s.timers.suspend(m, more)
	for _, p := range m.lives {
		p.Pause(d)
	}
}

// trueFor returns the true time that d takes on this machine's clocks, rounded up: a
// timer that fires before its time would be set again and again at one moment.
func (m *Machine) trueFor(d time.Duration) time.Duration {
	return time.Duration(math.Ceil(float64(d) / (1 + float64(m.ppm)/1e6)))
}

// Now returns what time.Now would return on the machine.
func (m *Machine) Now() time.Time { return instant(m.Wall(), m.Monotonic()) }
