package segment

import (
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/number"
)

// Options are the per-tag settings of leaf_tag_option. The zero value means
// "as configured for the node".
type Options struct {
	MinStep   int64 `json:"min_step,omitempty"`   // lower bound of the dynamic step; 0: the row's own step
	MaxStep   int64 `json:"max_step,omitempty"`   // upper bound of the dynamic step; 0: the node's limit
	FixedStep bool  `json:"fixed_step,omitempty"` // true: every range has exactly the row's own step

	// Format is the template of package number by which people read the tag's IDs; "": it has none.
	Format string `json:"format,omitempty"`

	// Order is OrderStrict or OrderPlain. A Store keeps OrderPlain as "".
	Order string `json:"order,omitempty"`

	// Period is how long numbers count on before they begin at 1 again: PeriodNone, number.Day, number.Month or
	// number.Year, in the time zone PeriodZone, an IANA name. A Store keeps PeriodNone and UTC as "".
	Period     string `json:"period,omitempty"`
	PeriodZone string `json:"period_zone,omitempty"`
}

// PeriodNone is the period of a tag whose numbers never begin anew.
const PeriodNone = "none"

const zoneUTC = "UTC"

// Values of Options.Order.
const (
	OrderPlain  = "plain"  // each node issues from ranges of its own, so the IDs of several nodes interleave
	OrderStrict = "strict" // one node at a time issues the tag, see Terms
)

// Strict reports whether the tag is in strict order. A value that this program does not know counts as
// strict: it may be that of a later version.
func (o Options) Strict() bool { return o.Order != "" && o.Order != OrderPlain }

// Stored returns o as a Store keeps it: an option that has its default value is zero.
func (o Options) Stored() Options {
	if o.Order == OrderPlain {
		o.Order = ""
	}
	if o.Period == PeriodNone {
		o.Period = ""
	}
	if o.PeriodZone == zoneUTC {
		o.PeriodZone = ""
	}
	return o
}

// Validate returns leaf.ErrBadRequest if the bounds are outside 1..MaxStep or
// cross each other, if Order is neither order, or if Format is no template, or one that does
// not show the period.
func (o Options) Validate() error {
	switch {
	case o.MinStep < 0 || o.MinStep > MaxStep:
		return leaf.BadField("min_step", o.MinStep, fmt.Sprintf("must be 1 to %d, or 0 for the row's own step", MaxStep))
	case o.MaxStep < 0 || o.MaxStep > MaxStep:
		return leaf.BadField("max_step", o.MaxStep, fmt.Sprintf("must be 1 to %d, or 0 for the node's limit", MaxStep))
	case o.MaxStep != 0 && o.MinStep > o.MaxStep:
		return leaf.BadField("min_step", o.MinStep, fmt.Sprintf("must not be above max_step=%d", o.MaxStep))
	case o.Strict() && o.Order != OrderStrict:
		return leaf.BadField("order", o.Order, "must be "+OrderPlain+" or "+OrderStrict)
	}
	if _, err := o.period(); err != nil {
		return err
	}
	_, err := o.template()
	return err
}

// dateFields are the fields of a format that show a period.
var dateFields = map[string]string{number.Day: "{yyyyMMdd}", number.Month: "{yyyyMM}", number.Year: "{yyyy}"}

// Template returns the template of Format. The error is leaf.ErrBadRequest, for a person who asked for the texts of
// this tag: there is no format, or one that this program cannot use.
func (o Options) Template(tag string) (*number.Template, error) {
	t, err := o.template()
	switch {
	case err != nil:
		return nil, fmt.Errorf("the format of tag %q cannot be used: %w", tag, err)
	case t == nil:
		return nil, fmt.Errorf("%w: tag %q has no format; give it one, such as INV-{seq:08}, with: leaf tag set TAG --format TEMPLATE", leaf.ErrBadRequest, tag)
	}
	return t, nil
}

// template returns the template of Format, nil if there is none.
func (o Options) template() (*number.Template, error) {
	t, err := parseFormat(o.Format)
	if err != nil || t == nil {
		return nil, err
	}
	switch period := o.Stored().Period; {
	case t.Period() == period:
		return t, nil
	case period == "":
		return nil, leaf.BadField("format", o.Format, "has a date, which needs the period "+t.Period()+" of the tag")
	default:
		return nil, leaf.BadField("format", o.Format, "must show the "+period+", because the numbers begin anew in each: "+dateFields[period])
	}
}

// parseFormat returns the template of a format, nil if there is none.
func parseFormat(format string) (*number.Template, error) {
	if format == "" {
		return nil, nil //nolint:nilnil // a tag without a format is valid
	}
	t, err := number.ParseTemplate(format)
	if wrong, ok := errors.AsType[*number.TemplateError](err); ok {
		return nil, leaf.BadField("format", format, wrong.Why)
	}
	return t, err
}

// Columns returns the names of the options in leaf_tag_option, and pointers to their values
// in o, in the same order.
func (o *Options) Columns() (names []string, values []any) {
	return []string{"min_step", "max_step", "fixed_step", "format", "id_order", "period", "period_zone"},
		[]any{&o.MinStep, &o.MaxStep, &o.FixedStep, &o.Format, &o.Order, &o.Period, &o.PeriodZone}
}

// Change is an edit of a row. Nil fields stay as they are.
type Change struct {
	MaxID       *int64  `json:"max_id,string,omitempty"`
	Step        *int64  `json:"step,omitempty"`
	Description *string `json:"description,omitempty"`
	MinStep     *int64  `json:"min_step,omitempty"`
	MaxStep     *int64  `json:"max_step,omitempty"`
	FixedStep   *bool   `json:"fixed_step,omitempty"`
	Format      *string `json:"format,omitempty"`
	Order       *string `json:"order,omitempty"`
	Period      *string `json:"period,omitempty"`
	PeriodZone  *string `json:"period_zone,omitempty"`
}

// CheckMaxID returns leaf.ErrConflict if the change must not set the max_id of a row whose max_id is
// now: max_id is never lowered, and a row below 0 needs a repair. No node wrote a number below 0, so
// it does not show what is in use. Drivers call CheckMaxID within the transaction of the change.
func (c Change) CheckMaxID(now int64) error {
	switch {
	case c.MaxID == nil:
		return nil
	case now < 0:
		return belowZero(now)
	case *c.MaxID < now:
		return fmt.Errorf("%w: max_id is %d and must not be lowered to %d", leaf.ErrConflict, now, *c.MaxID)
	}
	return nil
}

// belowZero says what to do about a max_id that no node wrote.
func belowZero(maxID int64) error {
	return fmt.Errorf("%w: max_id is %d, and no node wrote that; %s", leaf.ErrConflict, maxID, askAllNodes)
}

// TouchesOptions reports whether c needs leaf_tag_option.
func (c Change) TouchesOptions() bool {
	return c != Change{MaxID: c.MaxID, Step: c.Step, Description: c.Description}
}

// ApplyTo returns o with c's option fields set, as a Store keeps it.
func (c Change) ApplyTo(o Options) Options {
	if c.MinStep != nil {
		o.MinStep = *c.MinStep
	}
	if c.MaxStep != nil {
		o.MaxStep = *c.MaxStep
	}
	if c.FixedStep != nil {
		o.FixedStep = *c.FixedStep
	}
	if c.Format != nil {
		o.Format = *c.Format
	}
	if c.Order != nil {
		o.Order = *c.Order
	}
	if c.Period != nil {
		o.Period = *c.Period
	}
	if c.PeriodZone != nil {
		o.PeriodZone = *c.PeriodZone
	}
	return o.Stored()
}

// CheckPeriod returns leaf.ErrConflict if the change gives another period to a row that has one, or a period to a row
// whose max_id is in a later period than the one that is now, or sets such a max_id: no node would issue its numbers before.
// So it does if the change sets a max_id of an earlier period: numbers of this one may be in use.
// Drivers call CheckPeriod within the transaction of each change of options or max_id.
func (c Change) CheckPeriod(now Options, maxID int64) error {
	now, next := now.Stored(), c.ApplyTo(now)
	same := next.Period == now.Period && next.PeriodZone == now.PeriodZone
	if c.MaxID != nil {
		if _, why, before := next.beforePeriod(*c.MaxID, leaf.SystemRuntime().Now()); before {
			return fmt.Errorf("%w: max_id=%d %s", leaf.ErrConflict, *c.MaxID, why)
		}
		if first, beyond := next.beyondPeriod(*c.MaxID, leaf.SystemRuntime().Now()); beyond {
			return fmt.Errorf("%w: max_id must be below %d, with which the next period of the tag begins, and not %d", leaf.ErrConflict, first, *c.MaxID)
		}
	}
	switch {
	case same:
		return nil
	case now.Period != "":
		return fmt.Errorf("%w: the tag has the period %s, which it keeps with its time zone: its numbers could have the texts of others; %s", leaf.ErrConflict, now.Period, anotherTag)
	}
	if first, beyond := next.beyondPeriod(maxID, leaf.SystemRuntime().Now()); beyond {
		return fmt.Errorf("%w: max_id is %d, and must be below %d, with which the next period begins; %s", leaf.ErrConflict, maxID, first, anotherTag)
	}
	return nil
}

// CheckFormat returns leaf.ErrConflict if the change replaces the format of a row by one that may give
// to an ID the text that another ID has. now are the options of the row. Drivers call CheckFormat
// within the transaction of the change. A format that is removed is not compared with a later one.
func (c Change) CheckFormat(now Options) error {
	before, err := now.template()
	if err != nil || before == nil { // no node has written texts
		return nil //nolint:nilerr // of the row, not of the change
	}
	after, err := c.ApplyTo(now).template()
	if err != nil || after == nil || !before.Overlaps(after) {
		return err
	}
	return fmt.Errorf("%w: format %s may give to an ID the text that format %s has given to another ID of the tag; choose one with another length, or with a character that differs at its place, such as the first. "+
		"Only if no text of the old format is in use, and no client asks for texts now: remove it with leaf tag set TAG --format= and set the new one when segment.sync-interval has passed on all nodes", leaf.ErrConflict, after, before)
}

// Validate returns leaf.ErrBadRequest if a field that is set is outside its limits.
// Whether the options fit those that the row has shows only with them: ApplyTo.
func (c Change) Validate() error {
	o := c.ApplyTo(Options{})
	if _, err := parseFormat(o.Format); err != nil {
		return err
	}
	if o.Format = ""; c.Period == nil { // a format and a zone fit the period of the row, or they do not
		o.PeriodZone = ""
	}
	return c.validate(o)
}

func (c Change) validate(o Options) error {
	switch {
	case c.MaxID != nil && (*c.MaxID < 0 || *c.MaxID > MaxMaxID):
		return leaf.BadField("max_id", *c.MaxID, fmt.Sprintf("must be 0 to %d", int64(MaxMaxID)))
	case c.Step != nil && (*c.Step < 1 || *c.Step > MaxStep):
		return leaf.BadField("step", *c.Step, fmt.Sprintf("must be 1 to %d", MaxStep))
	case c.Description != nil && utf8.RuneCountInString(*c.Description) > MaxDescription:
		return leaf.BadField("description", *c.Description, fmt.Sprintf("must have at most %d characters", MaxDescription))
	case c.Description != nil && (!utf8.ValidString(*c.Description) || strings.IndexByte(*c.Description, 0) >= 0):
		return leaf.BadField("description", *c.Description, "must be valid UTF-8 without the character U+0000")
	}
	return o.Validate()
}
