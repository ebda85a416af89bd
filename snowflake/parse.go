package snowflake

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// String returns the layout as [ParseLayout] reads it, with every field.
func (l Layout) String() string {
	return fmt.Sprintf("epoch=%d,unit=%v,time=%d,datacenter=%d,worker=%d,sequence=%d",
		l.Epoch, l.Unit, l.TimeBits, l.DatacenterBits, l.WorkerBits, l.SequenceBits)
}

// ParseLayout reads a layout from text: the name of a preset ("leaf", "dc",
// "seconds", "js53"), a list of fields
// ("epoch=1288834974657,unit=1ms,time=41,datacenter=0,worker=10,sequence=12"), or
// a preset followed by the fields that differ ("leaf,epoch=1700000000000").
// Without a preset, an omitted epoch is that of Leaf, an omitted unit 1ms, and an
// omitted width 0. The layout is validated; every error is an ErrInvalid. A change
// of js53 keeps to 53 bits and lasts until 2050.
func ParseLayout(text string) (Layout, error) {
	l := Layout{Epoch: LeafEpoch, Unit: time.Millisecond}
	fields := strings.Split(text, ",")
	name := strings.TrimSpace(fields[0])
	if !strings.Contains(name, "=") {
		preset, ok := Preset(name)
		if !ok {
			return Layout{}, invalid("layout", quote(text),
				"must be one of "+strings.Join(Presets(), ", ")+", or a list of epoch=, unit=, time=, datacenter=, worker=, sequence=")
		}
		l, fields = preset, fields[1:]
	}
	seen := make(map[string]bool, len(fields))
	for _, field := range fields {
		key, value, _ := strings.Cut(field, "=")
		key = strings.TrimSpace(key)
		if seen[key] {
			return Layout{}, invalid("layout", quote(text), "has "+quote(key)+" twice")
		}
		seen[key] = true
		if err := l.set(key, strings.TrimSpace(value)); err != nil {
			return Layout{}, err
		}
	}
	err := l.Validate()
	if err == nil && name == "js53" {
		err = l.keepsJS53()
	}
	if err != nil {
		return Layout{}, err
	}
	return l, nil
}

// set gives one field of l its value.
func (l *Layout) set(key, value string) error {
	widths := map[string]*int{
		"time": &l.TimeBits, "datacenter": &l.DatacenterBits, "worker": &l.WorkerBits, "sequence": &l.SequenceBits,
	}
	var err error
	switch width := widths[key]; {
	case key == "epoch":
		l.Epoch, err = strconv.ParseInt(value, 10, 64)
	case key == "unit":
		l.Unit, err = time.ParseDuration(value)
	case width != nil:
		*width, err = strconv.Atoi(value)
	default:
		return invalid("layout", quote(key), "is no field; the fields are epoch, unit, time, datacenter, worker, sequence")
	}
	if err != nil {
		return invalid(key, quote(value), "is not a number (unit: 1ms, 10ms or 1s)")
	}
	return nil
}
