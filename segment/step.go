package segment

import "time"

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
