package chaos

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"
)

const (
	// breath is the time between two faults, before pace.
	breath = time.Second
	// recovery is what the plan expects after a heal.
	recovery = 1500 * time.Millisecond
	// slowest is the smallest pace: a fault of less than that is over before the
	// program can notice.
	slowest = 0.35
)

// deck deals the kinds of faults in a random order, all of them before any comes
// again.
type deck struct {
	chance *rand.Rand
	size   int
	left   []int
	passes int // how often all were dealt, this time included
}

// draw takes the next card that fits, and reports false if none does.
func (d *deck) draw(fits func(card int) bool) (card int, ok bool) {
	if len(d.left) == 0 {
		d.left = d.chance.Perm(d.size)
		d.passes++
	}
	i := slices.IndexFunc(d.left, fits)
	if i < 0 {
		return 0, false
	}
	card = d.left[i]
	d.left = slices.Delete(d.left, i, i+1)
	return card, true
}

// plan is how long the faults of a run last.
type plan struct {
	pace   float64 // what holds are multiplied by
	enough bool    // each kind must come at least once
}

// planFor fits the kinds into the time, one after the other.
func planFor(faults []fault, d time.Duration) plan {
	var holds time.Duration
	rest := time.Duration(len(faults)) * (breath + recovery)
	for _, f := range faults {
		holds += f.hold[1]
		rest += f.extra
	}
	pace := min(1, max(slowest, float64(d-calm-rest)/float64(max(1, holds))))
	return plan{pace: pace, enough: time.Duration(float64(holds)*pace)+rest*3/2+calm <= d}
}

// strike is one fault with all that was drawn for it.
type strike struct {
	fault  fault
	target target
	hold   time.Duration
	seed   uint64
}

// draw determines everything about a fault before it comes, so that the seed alone
// determines the sequence.
func (r *run) draw(f fault, p plan) strike {
	hold := f.hold[0] + time.Duration(r.chance.Float64()*float64(f.hold[1]-f.hold[0]))
	return strike{
		fault: f, target: f.targets[r.chance.IntN(len(f.targets))],
		hold: time.Duration(float64(hold) * p.pace), seed: r.chance.Uint64(),
	}
}

// nemesis brings faults until the time for the calm has come.
func (r *run) nemesis(ctx context.Context) error {
	faults := r.cluster.faults
	p := planFor(faults, r.cfg.Duration)
	r.report.Enough = p.enough
	for _, f := range faults {
		r.report.Kinds = append(r.report.Kinds, Kind{Name: f.name, About: f.about})
	}
	d := &deck{chance: r.chance, size: len(faults)}
	for {
		left := r.cfg.Duration - calm - (time.Since(r.begin) - r.served)
		fits := func(card int) bool { // a long one that no longer fits must not keep short ones out
			f := faults[card]
			return time.Duration(float64(f.hold[1])*p.pace)+f.extra+recovery <= left
		}
		card, some := d.draw(fits)
		if !some {
			return nil
		}
		strikes := []strike{r.draw(faults[card], p)}
		if d.passes > 1 && r.chance.IntN(5) == 0 { // first each alone: that is what the table shows
			if other, found := d.draw(func(card int) bool { return together(strikes[0].fault, faults[card]) && fits(card) }); found {
				strikes = append(strikes, r.draw(faults[other], p))
			}
		}
		if err := r.strike(ctx, strikes); err != nil {
			return err
		}
		if r.report.Failed() {
			return nil // what follows would be about the same fault
		}
		if err := pause(ctx, time.Duration(float64(breath)*p.pace)); err != nil {
			return err
		}
	}
}

// together reports whether two faults may be on at the same time: the one must not
// undo, hide or hinder the heal of the other.
func together(a, b fault) bool {
	return !a.alone && !b.alone && a.group != b.group && a.group != ofRows && b.group != ofRows
}

// strike brings the faults, the second one while the first is on, heals them in the
// same order, and waits until all clients are served again.
func (r *run) strike(ctx context.Context, strikes []strike) error {
	events := make([]Event, len(strikes))
	heals := make([]func(context.Context) error, len(strikes))
	for i, s := range strikes {
		events[i] = Event{Fault: s.fault.name, Target: s.target.name, Nodes: s.target.nodes, Pair: len(strikes) > 1, Begin: time.Since(r.begin)}
		var err error
		heals[i], events[i].Note, err = s.fault.begin(ctx, s.target, rand.New(rand.NewPCG(s.seed, 2)))
		if err != nil {
			return fmt.Errorf("%s, %s: %w", s.fault.name, s.target.name, err)
		}
	}
	for i, s := range strikes {
		if err := pause(ctx, s.hold-(time.Since(r.begin)-events[i].Begin)); err != nil {
			return err
		}
		if err := heals[i](ctx); err != nil {
			return fmt.Errorf("heal %s, %s: %w", s.fault.name, s.target.name, err)
		}
		events[i].Healed = time.Since(r.begin)
	}
	last := events[len(events)-1].Healed
	waiting := r.green(ctx, last)
	green := time.Since(r.begin)
	var names []string
	for i := range events {
		events[i].Green = green
		names = append(names, strings.TrimSuffix(fmt.Sprintf("%s (%s; %s", events[i].Fault, events[i].Target, events[i].Note), "; ")+")")
	}
	r.report.Events = append(r.report.Events, events...)
	r.cfg.Progress(fmt.Sprintf("%s %5.1fs  %s for %v, all served %v after",
		r.cfg.Topology, events[0].Begin.Seconds(), strings.Join(names, " + "), (last - events[0].Begin).Round(10*time.Millisecond),
		(events[0].Green - last).Round(10*time.Millisecond)))
	if waiting != "" {
		r.report.check(false, "within %v after %s every client is served: %s\n%s", r.cfg.Recovery, strings.Join(names, " + "), waiting, r.tails())
	}
	return nil
}
