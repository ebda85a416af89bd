// Package drivertest is the conformance suite of segment.Store, segment.Catalog,
// segment.Board, limit.Store, audit.Store and auth.Store, of fence.Cluster, of worker.Registry and of
// discovery.Directory. Every driver passes it; a bug found in one becomes a case for
// all.
//
// [Run] holds a store to the contract. [RunFaults] does the same behind a wire
// that can lose replies, hang and refuse commits, for drivers that talk to a
// server. What only some databases can do or cannot tell apart is said in the
// fields of [Backend] and [Faulty], so that no case is skipped in silence.
// [RunClusterFence], [RunRegistry] and [RunDirectory] do the same for the others.
//
// The cases state what must be true, never how long it takes, except where a
// deadline is the promise.
package drivertest

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/leaf-idgen/leaf/internal/audit"
	"github.com/leaf-idgen/leaf/internal/auth"
	"github.com/leaf-idgen/leaf/internal/limit"
	"github.com/leaf-idgen/leaf/segment"
)

// Store is what a driver implements.
type Store interface {
	segment.Store
	segment.Catalog
	segment.Board
	limit.Store
	audit.Store
	auth.Store
}

// Backend is a store on an empty database, and what the suite must know of it.
type Backend struct {
	Store Store

	// Put writes a row as it is, past all checks, and replaces one of that name.
	// Its options are not written.
	Put func(t *testing.T, row segment.Row)

	// Remove deletes a row as an operator does with SQL: nothing is left of it. It is used
	// where NoMeta is set, so that Delete refuses; nil elsewhere.
	Remove func(t *testing.T, tag string)

	// Record makes the database a part of a tag rule if it is of none: of several calls at once
	// one succeeds, and the others fail. nil where NoMeta is set.
	Record func(t *testing.T, b segment.Binding) error

	// Lock keeps a row from being written by others until unlock is called. nil:
	// the store has no locks.
	Lock func(t *testing.T, tag string) (unlock func())

	// LocksAll says that Lock blocks the writers of all rows.
	LocksAll bool

	// Other returns a second store on the same database, as another node has it.
	// nil: there can be no other.
	Other func(t *testing.T) Store

	// Same reports whether the column biz_tag takes a name for one of others. nil: it
	// compares bytes.
	Same func(name string, others ...string) bool

	// Holds reports whether the column biz_tag can hold a name. nil: any.
	Holds func(tag string) bool

	NoText    bool // leaf_alloc has no text column
	NoOptions bool // there is no leaf_tag_option
	NoLimits  bool // the tables lack the columns for limits; always so without leaf_tag_option
	NoMeta    bool // there is no leaf_meta, nor a board, nor an audit log, nor tokens
}

// New returns a backend on an empty database. It is called once per case.
type New func(t *testing.T) Backend

// Run holds a store to the contract, or only to the named groups of it: for a database that differs
// from another one in what these groups look at alone.
func Run(t *testing.T, newBackend New, only ...string) {
	t.Helper()
	ran := 0
	for _, group := range []struct {
		name  string
		cases []testCase
	}{
		{"Reserve", reserveCases},
		{"Concurrent", concurrentCases},
		{"ReturnUnused", returnCases},
		{"Raise", raiseCases},
		{"Read", readCases},
		{"Catalog", catalogCases},
		{"Limits", limitCases},
		{"Tag", tagCases},
		{"Bind", bindCases},
		{"Board", boardCases},
		{"Lock", lockCases},
		{"Audit", auditCases},
		{"Token", tokenCases},
	} {
		if len(only) > 0 && !slices.Contains(only, group.name) {
			continue
		}
		ran++
		t.Run(group.name, func(t *testing.T) {
			t.Parallel()
			for _, c := range group.cases {
				t.Run(c.name, func(t *testing.T) { c.run(t, newBackend(t)) })
			}
		})
	}
	if len(only) > 0 && ran != len(only) {
		t.Errorf("%d groups have the names %q", ran, only)
	}
}

type testCase struct {
	name string
	run  func(t *testing.T, b Backend)
}

// longest is the deadline of calls that are expected to succeed. It is generous,
// because it only has to be short of forever.
const longest = 30 * time.Second

func ctx(t *testing.T) context.Context {
	t.Helper()
	c, cancel := context.WithTimeout(t.Context(), longest)
	t.Cleanup(cancel)
	return c
}

// request asks for length IDs of a row whose step is believed to be step.
func request(tag string, step, length int64) segment.Request {
	return segment.Request{Tag: tag, Step: step, Length: length, Min: 1, Max: segment.MaxStep}
}

// put writes a row with a description, so that no case depends on its absence.
func put(t *testing.T, b Backend, tag string, maxID, step int64) {
	t.Helper()
	b.Put(t, segment.Row{Tag: tag, MaxID: maxID, Step: step, UpdateTime: time.Now()})
}

// maxID returns max_id as the database has it.
func maxID(t *testing.T, s segment.Store, tag string) int64 {
	t.Helper()
	row, err := s.Lookup(ctx(t), tag)
	if err != nil {
		t.Fatalf("Lookup(%q): %v", tag, err)
	}
	return row.MaxID
}
