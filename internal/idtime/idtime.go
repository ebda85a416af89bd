package idtime

import (
	"fmt"
	"time"

	"github.com/leaf-idgen/leaf"
)

// Layout translates between IDs and time. All methods are safe for concurrent use.
type Layout interface {
	// Decode takes an ID apart. Error: leaf.ErrBadRequest for a number outside of the layout.
	Decode(id int64) (Decoded, error)

	// Range returns every ID, of any worker, issued or not, whose unit of time overlaps
	// [from, to). With a zero to it is the unit that from lies in. Error: leaf.ErrBadRequest
	// if to is not after from, or if a time lies outside of the layout: an answer that is cut
	// to the layout would hide a time in another unit.
	Range(from, to time.Time) (Range, error)

	// Of returns the Layout that text names, as snowflake.layout does, whether or not a node
	// issues IDs of it. Error: leaf.ErrBadRequest.
	Of(text string) (Layout, error)
}

// Decoded is an ID taken apart. 64-bit numbers are strings in JSON.
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

// Range is the half-open interval [Lo, Hi) of IDs. 64-bit numbers are strings in JSON.
type Range struct {
	Lo     int64  `json:"lo,string"`
	Hi     int64  `json:"hi,string"` // the first ID behind
	Layout string `json:"layout"`
}

// None is the Layout of a server that has none: every error is leaf.ErrDisabled.
type None struct{}

var errNone = fmt.Errorf("%w: this server has no layout of IDs", leaf.ErrDisabled)

// Decode implements Layout.
func (None) Decode(int64) (Decoded, error) { return Decoded{}, errNone }

// Range implements Layout.
func (None) Range(time.Time, time.Time) (Range, error) { return Range{}, errNone }

// Of implements Layout.
func (None) Of(string) (Layout, error) { return nil, errNone }
