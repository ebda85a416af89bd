package config

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/leaf-idgen/leaf/snowflake"
)

// ParseLayout reads the key snowflake.layout.
func ParseLayout(text string) (snowflake.Layout, error) {
	l, err := snowflake.ParseLayout(text)
	if err != nil {
		return l, &Error{Key: "snowflake.layout", Value: text, Limit: strings.TrimPrefix(err.Error(), snowflake.ErrInvalid.Error()+": ")}
	}
	return l, nil
}

// Workers are the worker IDs that a node may have: those of the layout that has the fewest.
type Workers struct {
	Most   int64
	layout string // of which these are; "": of snowflake.layout
}

// String says which they are, as in "0-63, the workers of the layout js53".
func (w Workers) String() string {
	if w.layout == "" {
		return fmt.Sprintf("0-%d, the workers of the layout", w.Most)
	}
	return fmt.Sprintf("0-%d, the workers of the layout %s", w.Most, w.layout)
}

// Workers reads the keys snowflake.layout and snowflake.layouts.
func (c Snowflake) Workers() (w Workers, err error) {
	main, err := ParseLayout(c.Layout)
	if err != nil {
		return w, err
	}
	all, err := snowflake.ParseFurther(main, c.Layouts)
	if err != nil {
		return w, &Error{Key: "snowflake.layouts", Value: strings.Join(c.Layouts, ListSeparator), Limit: strings.TrimPrefix(err.Error(), snowflake.ErrInvalid.Error()+": ")}
	}
	w.Most = int64(1)<<main.WorkerBits - 1
	for i, l := range all[1:] {
		if most := int64(1)<<l.WorkerBits - 1; most < w.Most {
			w = Workers{most, c.Layouts[i]}
		}
		if most := int64(1)<<l.DatacenterBits - 1; c.Datacenter > most {
			return w, &Error{Key: "snowflake.datacenter", Value: strconv.FormatInt(c.Datacenter, 10), Limit: fmt.Sprintf("must be 0 to %d in the layout %s", most, c.Layouts[i])}
		}
	}
	return w, nil
}
