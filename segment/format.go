package segment

import (
	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/number"
)

// tagOptions are the options of a row that are in force.
type tagOptions struct {
	Options                   // without those of the step if they cross
	template *number.Template // nil: no format, or one that cannot be used
	period   *period          // nil: no period, or one that cannot be used
	maxID    int64            // the highest that was seen since the tag has options: a reading may be older than a load
}

// next returns the options in force after o was read from the row, nil if there are none. Options of
// the step that cannot be used are left out, with the error; a format that cannot be used only counts
// where it is asked for, and what an unknown order counts as, Strict says.
func (was *tagOptions) next(o Options) (*tagOptions, error) {
	if o == (Options{}) {
		return nil, nil //nolint:nilnil // as most tags
	}
	now := &tagOptions{Options: o}
	if was != nil {
		now.maxID = was.maxID
	}
	if was != nil && was.Format == o.Format && was.Period == o.Period {
		now.template = was.template
	} else {
		now.template, _ = o.template() // Template says why there is none
	}
	if was != nil && was.Period == o.Period && was.PeriodZone == o.PeriodZone {
		now.period = was.period
	} else {
		now.period, _ = o.period() // periodLocked says why there is none
	}
	o.Format, o.Order, o.Period, o.PeriodZone = "", "", "", ""
	err := o.Validate()
	if err != nil {
		now.Options = Options{Format: now.Format, Order: now.Order, Period: now.Period, PeriodZone: now.PeriodZone}
	}
	return now, err
}

// Template returns the template by which people read the IDs of a tag. It looks in memory only: known is false if the
// tag is not in the table, as before its first ID is asked for. A tag that has issued an ID is known until its row is
// deleted. The error is that of [Options.Template].
func (a *Allocator) Template(tag string) (t *number.Template, known bool, err error) {
	of := a.tag(tag)
	if of == nil {
		return nil, false, nil
	}
	of.mu.Lock()
	o := of.options
	of.mu.Unlock()
	switch {
	case o == nil:
		t, err = Options{}.Template(tag)
	case o.template == nil:
		t, err = o.Template(tag)
	default:
		t = o.template
	}
	return t, true, err
}

// fitsLocked begins or ends the alarm of a format that cannot be used, or of which 90 % is used up. maxID is that of the
// row. t.mu is held.
func (t *Tag) fitsLocked(maxID int64) {
	o := t.options
	if o != nil {
		o.maxID = max(o.maxID, maxID)
	}
	switch {
	case o != nil && o.period == nil && o.Stored().Period != "":
		_, err := o.Options.period()
		t.tight = true
		t.alloc.alarms.Raise(periodAlarm(t.name, err))
	case o != nil && o.Format != "" && o.template == nil:
		_, err := o.Template(t.name)
		t.tight = true
		t.alloc.alarms.Raise(formatAlarm(t.name, err))
	case o != nil && o.template != nil && o.template.Sequence(o.maxID) > o.template.Largest()-o.template.Largest()/10:
		t.tight = true
		t.alloc.alarms.Raise(widthAlarm(t.name, o.template.Sequence(o.maxID), o.template))
	case t.tight:
		t.tight = false
		t.alloc.alarms.Clear(leaf.AlarmFormat, t.name)
	}
}
