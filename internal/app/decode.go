package app

import (
	"fmt"
	"strings"
	"time"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/internal/config"
	"github.com/leaf-idgen/leaf/internal/idtime"
	"github.com/leaf-idgen/leaf/snowflake"
)

// Decode takes an ID apart, without a node. now is what the time of the ID is compared
// with. Errors are leaf.ErrBadRequest: a bad layout, or a number outside of it.
func Decode(layout string, id int64, now time.Time) (idtime.Decoded, error) {
	t, err := timesOf(layout)
	if err != nil {
		return idtime.Decoded{}, err
	}
	return t.decode(id, now)
}

// IDsOf returns the IDs of a time, without a node, as idtime.Layout has it. Errors are
// leaf.ErrBadRequest: a bad layout, or times outside of it.
func IDsOf(layout string, from, to time.Time) (idtime.Range, error) {
	t, err := timesOf(layout)
	if err != nil {
		return idtime.Range{}, err
	}
	return t.Range(from, to)
}

// times is the idtime.Layout of a layout. It needs no worker ID, so it does not depend on
// whether the mode is on.
type times struct {
	layout snowflake.Layout
	name   string // as configured
}

func timesOf(layout string) (times, error) {
	l, err := config.ParseLayout(layout)
	return times{l, layout}, err
}

// Decode implements idtime.Layout.
func (t times) Decode(id int64) (idtime.Decoded, error) { return t.decode(id, time.Now()) }

// Of implements idtime.Layout.
func (times) Of(text string) (idtime.Layout, error) {
	l, err := snowflake.ParseLayout(text)
	if err != nil {
		return nil, badRequest(err)
	}
	return times{l, text}, nil
}

func (t times) decode(id int64, now time.Time) (idtime.Decoded, error) {
	l := t.layout
	p, err := l.Decode(id)
	if err != nil {
		return idtime.Decoded{}, badRequest(err)
	}
	d := idtime.Decoded{ID: id, UnixMilli: l.Millis(p.Unit), Worker: p.Worker, Sequence: p.Sequence, Layout: t.name}
	d.Time = time.UnixMilli(d.UnixMilli).UTC()
	if l.DatacenterBits > 0 {
		d.Datacenter = &p.Datacenter
	}
	switch {
	case !d.Time.Before(l.End()):
		d.Warning = "no ID is issued for this time: it is the end of the layout"
	case d.Time.After(now):
		d.Warning = "the time lies in the future: the ID has another layout or epoch, or a clock was wrong"
	}
	return d, nil
}

// Range implements idtime.Layout.
func (t times) Range(from, to time.Time) (idtime.Range, error) {
	l := t.layout
	begin, end := time.UnixMilli(l.Epoch).UTC(), l.End()
	limits := begin.Format(time.RFC3339Nano) + " to " + end.Format(time.RFC3339Nano) + ", the time of the layout"
	switch {
	case from.Before(begin) || !from.Before(end):
		return idtime.Range{}, leaf.BadField("from", from.Format(time.RFC3339Nano), "must lie in "+limits)
	case to.IsZero():
		to = from.Add(1)
	case !to.After(from):
		return idtime.Range{}, leaf.BadField("to", to.Format(time.RFC3339Nano), "must be after from="+from.Format(time.RFC3339Nano))
	case to.After(end):
		return idtime.Range{}, leaf.BadField("to", to.Format(time.RFC3339Nano), "must lie in "+limits)
	}
	r := l.IDs(from, to)
	return idtime.Range{Lo: r.Lo, Hi: r.Hi, Layout: t.name}, nil
}

// badRequest returns an error of package snowflake as one of a request.
func badRequest(err error) error {
	return fmt.Errorf("%w: %s", leaf.ErrBadRequest, strings.TrimPrefix(err.Error(), snowflake.ErrInvalid.Error()+": "))
}

// LayoutInfo describes a layout. 64-bit numbers are strings in JSON.
type LayoutInfo struct {
	Name          string    `json:"name"`   // as asked for
	Fields        string    `json:"fields"` // the same in full
	Bits          int       `json:"bits"`
	Begin         time.Time `json:"begin"`
	End           time.Time `json:"end"` // no ID is issued from here on
	Datacenters   int64     `json:"datacenters"`
	Workers       int64     `json:"workers"` // per datacentre
	PerUnit       int64     `json:"ids_per_unit"`
	Unit          string    `json:"unit"`
	LargestNumber int64     `json:"largest,string"`
}

// Layouts describes one layout, or with "" those that have a name.
func Layouts(layout string) ([]LayoutInfo, error) {
	names := snowflake.Presets()
	if layout != "" {
		names = []string{layout}
	}
	out := make([]LayoutInfo, 0, len(names))
	for _, name := range names {
		l, err := config.ParseLayout(name)
		if err != nil {
			return nil, err
		}
		out = append(out, LayoutInfo{
			Name: name, Fields: l.String(), Bits: l.Bits(), Begin: time.UnixMilli(l.Epoch).UTC(), End: l.End(),
			Datacenters: int64(1) << l.DatacenterBits, Workers: int64(1) << l.WorkerBits,
			PerUnit: int64(1) << l.SequenceBits, Unit: l.Unit.String(), LargestNumber: int64(1)<<l.Bits() - 1,
		})
	}
	return out, nil
}
