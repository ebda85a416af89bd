package idlog

import (
	"fmt"
	"math"
	"time"
)

// Report is what [Check] found. Counts stop at the largest uint64.
type Report struct {
	Logs []LogReport `json:"logs"` // in the order of the arguments
	Keys []KeyReport `json:"keys"` // in the order in which they first appear

	// The first of each kind, see Options.List: duplicates by key and ID, violations
	// of the order by log and line, those of real time by key and begin.
	Duplicates []Duplicate `json:"duplicates,omitempty"`
	Disorders  []Disorder  `json:"out_of_order,omitempty"`
	Inversions []Inversion `json:"against_time,omitempty"` // by key and begin

	// Totals over all keys. Lowest and Highest are those of the whole, Largest is the
	// largest gap of any key.
	Total KeyReport `json:"total"`

	Spilled int64 `json:"spilled,string"` // bytes of the temporary file, 0 if none was needed
}

// LogReport is about one log.
type LogReport struct {
	Name    string `json:"name"`
	Format  Format `json:"format"`
	Records uint64 `json:"records,string"`
	IDs     uint64 `json:"ids,string"`
	Torn    *Torn  `json:"torn,omitempty"`
}

// KeyReport is about one key over all logs.
type KeyReport struct {
	Key        string `json:"key"`
	IDs        uint64 `json:"ids,string"`          // all, repeated ones as often as they appear
	Distinct   uint64 `json:"distinct,string"`     // different ones
	Duplicates uint64 `json:"duplicates,string"`   // different ones that appear more than once
	Runs       uint64 `json:"runs,string"`         // the duplicates, counted as runs of consecutive IDs
	Disorders  uint64 `json:"out_of_order,string"` // records not larger than the one before
	Later      uint64 `json:"later,string"`        // with Options.Strict: records whose call began after another had ended
	Inversions uint64 `json:"against_time,string"` // those of them that are not larger than the largest ID from before
	Lowest     int64  `json:"lowest,string"`
	Highest    int64  `json:"highest,string"`
	Missing    uint64 `json:"missing,string"` // numbers between Lowest and Highest that do not appear
	Gaps       uint64 `json:"gaps,string"`    // runs of missing numbers
	Largest    Gap    `json:"largest_gap"`    // the first one of its length
}

// Gap is the missing numbers Lo to Hi, both included. The zero Gap is none.
type Gap struct {
	Lo  int64  `json:"lo,string"`
	Hi  int64  `json:"hi,string"`
	Len uint64 `json:"len,string"`
}

// Duplicate is a longest run of consecutive IDs, Lo to Hi, that all appear more than
// once. The places are those of Lo, at most [MaxPlaces]; Times counts them all.
type Duplicate struct {
	Key    string  `json:"key"`
	Lo     int64   `json:"lo,string"`
	Hi     int64   `json:"hi,string"`
	Times  uint64  `json:"times,string"`
	Places []Place `json:"places"`
}

// MaxPlaces is how many places of a duplicate are named.
const MaxPlaces = 8

// String returns the key and the IDs, as in a log.
func (d Duplicate) String() string { return Record{Key: d.Key, Lo: d.Lo, Hi: d.Hi}.String() }

// Disorder is a record that begins at or below the last ID before it of its key in its
// log.
type Disorder struct {
	Record Record `json:"record"`
	After  int64  `json:"after,string"` // the last ID before
	Place  Place  `json:"place"`
}

// String returns one line.
func (d Disorder) String() string {
	return fmt.Sprintf("%v: %v after %d", d.Place, d.Record, d.After)
}

// Inversion is two calls of one key whose IDs are in the wrong order: Before had ended when
// After began, and the first ID of After is not larger than the last one of Before. Of all
// calls that had ended, Before is the one with the largest ID.
type Inversion struct {
	Before      Record `json:"before"`
	BeforePlace Place  `json:"before_place"`
	After       Record `json:"after"`
	AfterPlace  Place  `json:"after_place"`
}

// String returns one line.
func (i Inversion) String() string {
	return fmt.Sprintf("%v: %v began %v after the end of %v at %v",
		i.AfterPlace, i.After, time.Duration(i.After.Call.Begin-i.Before.Call.End), i.Before, i.BeforePlace)
}

// Clean reports whether no ID repeats, and none is out of order or against real time. Gaps
// do not count.
func (r *Report) Clean() bool {
	return r.Total.Duplicates == 0 && r.Total.Disorders == 0 && r.Total.Inversions == 0
}

// total adds up the keys.
func (r *Report) total() {
	t := KeyReport{Lowest: math.MaxInt64, Highest: math.MinInt64}
	for i := range r.Keys {
		k := &r.Keys[i]
		t.IDs = sum(t.IDs, k.IDs)
		t.Distinct = sum(t.Distinct, k.Distinct)
		t.Duplicates = sum(t.Duplicates, k.Duplicates)
		t.Runs = sum(t.Runs, k.Runs)
		t.Disorders = sum(t.Disorders, k.Disorders)
		t.Later = sum(t.Later, k.Later)
		t.Inversions = sum(t.Inversions, k.Inversions)
		t.Lowest = min(t.Lowest, k.Lowest)
		t.Highest = max(t.Highest, k.Highest)
		t.Missing = sum(t.Missing, k.Missing)
		t.Gaps = sum(t.Gaps, k.Gaps)
		if k.Largest.Len > t.Largest.Len {
			t.Largest = k.Largest
		}
	}
	if len(r.Keys) == 0 {
		t.Lowest, t.Highest = 0, 0
	}
	r.Total = t
}
