package servertest

import (
	"time"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/internal/idtime"
)

// Times is an idtime.Layout whose method Decode is the function. Its IDs are the milliseconds
// since 1970.
type Times func(id int64) (idtime.Decoded, error)

// Decode implements idtime.Layout.
func (f Times) Decode(id int64) (idtime.Decoded, error) { return f(id) }

// Of implements idtime.Layout.
func (f Times) Of(string) (idtime.Layout, error) { return f, nil }

// Range implements idtime.Layout.
func (Times) Range(from, to time.Time) (idtime.Range, error) {
	if to.IsZero() {
		to = from.Add(time.Millisecond)
	}
	if !to.After(from) {
		return idtime.Range{}, leaf.BadField("to", to.Format(time.RFC3339Nano), "must be after from="+from.Format(time.RFC3339Nano))
	}
	return idtime.Range{Lo: from.UnixMilli(), Hi: to.UnixMilli(), Layout: "test"}, nil
}
