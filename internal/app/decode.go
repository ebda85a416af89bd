package app

import (
	"fmt"
	"strings"
	"time"

	"github.com/leaf-idgen/leaf/internal/config"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/internal/server/httpd"
	"github.com/leaf-idgen/leaf/internal/server/respd"
	"github.com/leaf-idgen/leaf/snowflake"
)

// Decoded is an ID of snowflake mode, taken apart. 64-bit numbers are strings in JSON.
type Decoded struct {
	ID         int64     `json:"id,string"`
	Time       time.Time `json:"time"` // start of the unit, UTC
	UnixMilli  int64     `json:"unix_ms,string"`
	Datacenter *int64    `json:"datacenter,omitempty"` // nil if the layout has none
	Worker     int64     `json:"worker"`
	Sequence   int64     `json:"sequence"`
	Layout     string    `json:"layout"`
	Warning    string    `json:"warning,omitempty"` // why it is most likely no ID of this layout
}

// Decode takes an ID apart, without a node. now is what the time of the ID is compared
// with. Errors are leaf.ErrBadRequest: a bad layout, or a number outside of it.
func Decode(layout string, id int64, now time.Time) (Decoded, error) {
	l, err := config.ParseLayout(layout)
	if err != nil {
		return Decoded{}, err
	}
	p, err := decodeParts(l, id)
	if err != nil {
		return Decoded{}, err
	}
	d := Decoded{ID: id, UnixMilli: l.Millis(p.Unit), Worker: p.Worker, Sequence: p.Sequence, Layout: layout}
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

func decodeParts(l snowflake.Layout, id int64) (snowflake.Parts, error) {
	p, err := l.Decode(id)
	if err != nil {
		return p, fmt.Errorf("%w: %s", leaf.ErrBadRequest, strings.TrimPrefix(err.Error(), snowflake.ErrInvalid.Error()+": "))
	}
	return p, nil
}

// decoder is what /decodeSnowflakeId answers. It needs no worker ID, so it does not
// depend on whether the mode is on.
func decoder(l snowflake.Layout) func(id int64) (httpd.Decoded, error) {
	return func(id int64) (httpd.Decoded, error) {
		p, err := decodeParts(l, id)
		return httpd.Decoded{
			UnixMilli: l.Millis(p.Unit), Worker: p.Worker, Sequence: p.Sequence, Datacenter: p.Datacenter, HasDatacenter: l.DatacenterBits > 0,
		}, err
	}
}

// decodeRESP is decoder for the command LEAF.DECODE.
func decodeRESP(l snowflake.Layout) func(int64) (respd.Decoded, error) {
	decode := decoder(l)
	return func(id int64) (respd.Decoded, error) {
		d, err := decode(id)
		return respd.Decoded(d), err
	}
}
