package snowflake

import "time"

// The generator uses every unit of a layout but the last one, so that the
// exclusive end of the last range of IDs is a positive number too.

// end returns the first unit that no ID is issued for.
func (l Layout) end() int64 { return mask(l.TimeBits) }

// perUnit returns the milliseconds of one unit.
func (l Layout) perUnit() int64 { return max(1, l.Unit.Milliseconds()) }

// Ceil returns the first unit that starts at or after unixMilli: floors and
// bounds are whole units, rounded up (rule F). A time before the epoch gives
// 0; a time beyond the end gives the end, for which no ID is ever issued. It is
// monotone: a later time never gives an earlier unit.
func (l Layout) Ceil(unixMilli int64) int64 {
	if unixMilli <= l.Epoch {
		return 0
	}
	since, per := unixMilli-l.Epoch, l.perUnit()
	u := since / per
	if since%per != 0 {
		u++
	}
	return min(u, l.end())
}

// Floor returns the unit that contains unixMilli. A time before the epoch is an
// ErrInvalid, one at or beyond the end an ErrOverflow.
func (l Layout) Floor(unixMilli int64) (int64, error) {
	if unixMilli < l.Epoch {
		return 0, invalid("time", unixMilli, "must not be before the epoch")
	}
	u := (unixMilli - l.Epoch) / l.perUnit()
	if u >= l.end() {
		return 0, ErrOverflow
	}
	return u, nil
}

// Millis returns the start of a unit in Unix milliseconds. A unit outside the
// layout counts as its first or its last one.
func (l Layout) Millis(unit int64) int64 {
	return l.Epoch + min(max(unit, 0), l.end())*l.perUnit()
}

// End returns the first moment for which no ID can be issued.
func (l Layout) End() time.Time { return time.UnixMilli(l.Millis(l.end())).UTC() }

// Range is the half-open interval [Lo, Hi) of IDs.
type Range struct {
	Lo int64 // first ID
	Hi int64 // first ID that is no longer part of the range
}

// Len returns the number of IDs in r.
func (r Range) Len() int64 { return max(0, r.Hi-r.Lo) }

// IDs returns the range that holds every ID, of any worker, whose unit overlaps
// [from, to): a query for the rows of that time. What lies outside the layout is
// cut off; the result is empty if to is not after from.
func (l Layout) IDs(from, to time.Time) Range {
	if !to.After(from) {
		return Range{}
	}
	lo := min(max(0, from.UnixMilli()-l.Epoch)/l.perUnit(), l.end())
	shift := l.Bits() - l.TimeBits
	return Range{Lo: lo << shift, Hi: l.Ceil(ceilMilli(to)) << shift}
}

// ceilMilli returns t in Unix milliseconds, rounded up.
func ceilMilli(t time.Time) int64 {
	ms := t.UnixMilli()
	if t.After(time.UnixMilli(ms)) {
		ms++
	}
	return ms
}
