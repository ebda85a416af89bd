package segment

import (
	"fmt"
	"sync/atomic"
	"time"

	"github.com/leaf-idgen/leaf"
)

// livePace is a pace that can be replaced between two loads.
type livePace struct{ atomic.Pointer[pace] }

func (l *livePace) request(tag string, step int64, o Options, last lastLoad, now time.Time) Request {
	return l.Load().request(tag, step, o, last, now)
}

// SetStep replaces Config.MaxStep and Config.FixedStep. They count from the next load of each
// tag on. Error: leaf.ErrBadRequest if maxStep is not 1 to MaxStep.
func (a *Allocator) SetStep(maxStep int64, fixed bool) error {
	if maxStep < 1 || maxStep > MaxStep {
		return leaf.BadField("max step", maxStep, fmt.Sprintf("must be 1 to %d", int64(MaxStep)))
	}
	next := *a.pace.Load()
	next.maxStep, next.fixed = maxStep, fixed
	a.pace.Store(&next)
	return nil
}

// pace decides the length of the next range: from the second
// refill on it follows from how long the last range lasted, measured from one
// request for a range to the next, as the original does.
type pace struct {
	short   time.Duration // a range that lasted less is doubled
	long    time.Duration // one that lasted more is halved
	maxStep int64         // limit of doubling where a tag has none of its own
	fixed   bool          // no dynamic step on this node
}

// bounds returns the limits of a dynamic length for a row's own step.
func (p pace) bounds(step int64, o Options) (floor, ceil int64) {
	floor = step
	if o.MinStep != 0 {
		floor = o.MinStep
	}
	if o.MaxStep != 0 {
		return min(floor, o.MaxStep), o.MaxStep
	}
	return floor, max(floor, p.maxStep)
}

// next returns the length after a range of length, asked for at an interval of
// lasted. Below short it doubles, above long it halves; both boundaries keep it.
func (p pace) next(length, floor, ceil int64, lasted time.Duration) int64 {
	switch {
	case lasted < p.short:
		length *= 2 // at most 2^31
	case lasted > p.long:
		length /= 2
	}
	return min(max(length, floor), ceil)
}

// request plans a load from what the tag remembers of its last one.
func (p pace) request(tag string, step int64, o Options, last lastLoad, now time.Time) Request {
	req := Request{Tag: tag, Step: step, Min: 1, Max: MaxStep}
	if p.fixed || o.FixedStep {
		req.Length = step
		return req
	}
	floor, ceil := p.bounds(max(step, 1), o)
	if o.MinStep != 0 {
		req.Min = floor
	}
	if o.MaxStep != 0 {
		req.Max = ceil
	}
	if last.count < 2 || last.step != step {
		req.Length = min(max(step, floor), ceil)
	} else {
		req.Length = p.next(last.length, floor, ceil, now.Sub(last.asked))
	}
	return req
}

// lastLoad is what a tag remembers of its last load.
type lastLoad struct {
	count  int       // loads so far
	asked  time.Time // when it was asked for
	step   int64     // the row's own step then
	length int64     // IDs it brought
}
