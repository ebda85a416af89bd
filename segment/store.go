package segment

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"time"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/segment/fence"
)

// Limits of a row. A row outside them is refused ([leaf.ErrInvalidRow]) before
// anything is written.
const (
	MaxStep  = 1 << 30      // a row's own step is valid from 1 to MaxStep
	MaxMaxID = fence.MaxEnd // max_id is valid from 0 to MaxMaxID; see chunk.take for the distance to 2^63
)

// Errors of a Store beside those of package leaf.
var (
	// ErrSchema: the database answers, but has no usable leaf_alloc table, or lacks
	// a table that the configuration needs. The text says which command creates it.
	ErrSchema = errors.New("segment: schema")

	// ErrDenied: the database answers, but lets the node's user not in, or not do what
	// the call needs. The text says what an administrator of the database does.
	ErrDenied = errors.New("access denied")

	// ErrRule: the database belongs to another division of tags over databases
	// than this node's (rule K). Serving would repeat IDs.
	ErrRule = errors.New("segment: another tag-to-database rule")
)

// ClusterError says that the database is another cluster's now: its name leads elsewhere,
// or the content of another one was loaded into it (rule V).
type ClusterError struct {
	Own   string // the cluster's ID that this node read first, in this or an earlier process
	Found string // the one that the database has
}

// Error implements error.
func (e *ClusterError) Error() string {
	return fmt.Sprintf("the database is another cluster's: its table leaf_meta has cluster_id %s, and this node is one of cluster %s", e.Found, e.Own)
}

// NewClusterID returns an ID for a database that has none: 32 hex digits by chance.
func NewClusterID() string {
	var random [16]byte
	_, _ = rand.Read(random[:]) // never fails
	return hex.EncodeToString(random[:])
}

// Store is one database that holds rows of leaf_alloc. The engine owns this
// interface; drivers implement it and prove it with drivertest.
//
// Contract for every method: safe for concurrent use; honours ctx, whose
// deadline the engine always sets; returns an error that matches one sentinel of
// this package or of package leaf where one is named, and any other error when
// the database could not be reached or did not answer, after which the outcome of
// a write is unknown. Tag names are compared byte by byte, whatever the collation
// of the column: a row that differs in one byte is leaf.ErrUnknownTag and is not
// written (rule K).
type Store interface {
	// Bind is called until it succeeds, before every other method but the Catalog's,
	// and again before every Rows: it verifies that the tables can be used (ErrSchema)
	// and that the database belongs to the binding (ErrRule). Where none is recorded it may
	// record a binding without a rule. One with a rule is ErrSchema there, and is recorded by an
	// operator's command alone, which compares the rows of all databases. Both errors are
	// permanent for a start. A node that runs issues nothing from the database after ErrRule,
	// until Bind succeeds again. Where another process can record another binding, Reserve
	// compares it within its transaction: without the own one there is no range.
	//
	// A database may name its cluster. Then Bind, Reserve, ReturnUnused, Raise, Lookup and Rows fail
	// with a *ClusterError when it names another one than it did at first, and ReturnUnused and Raise
	// change nothing. The node then loads nothing until Bind succeeds again; ranges that it
	// has loaded before are of its own cluster. Each call compares by itself: two connections
	// can lead to two databases.
	Bind(ctx context.Context, b Binding) error

	// Reserve advances one row and returns the range that the committed statement
	// reserved. It is atomic against all other writers of the row, on every node:
	// no two calls ever return overlapping ranges.
	//
	// If the row's own step equals req.Step, the range has req.Length IDs; if not
	// (an administrator edited it, or req.Step is 0, "unknown"), it has as many as the
	// row's own step, held within [req.Min, req.Max].
	//
	// Errors: leaf.ErrUnknownTag, leaf.ErrInvalidRow (step outside 1..MaxStep or
	// max_id below 0), leaf.ErrOverflow (max_id would pass MaxMaxID); in these
	// three cases the row is unchanged. After any other error it is unknown whether
	// the row moved, and there is no range: the IDs are lost if it did. A retry is
	// always safe, and so is a driver that sends the statement twice.
	Reserve(ctx context.Context, req Request) (Reservation, error)

	// ReturnUnused lowers max_id from hi to lo if it still is exactly hi, in one
	// compare-and-set. It must be sent at most once, also by connection pools and
	// drivers below: a repetition after an unknown outcome could meet a max_id that
	// went up and came back (rule G). Errors: leaf.ErrConflict if max_id is
	// not hi, leaf.ErrUnknownTag.
	ReturnUnused(ctx context.Context, tag string, hi, lo int64) error

	// Raise sets max_id to the larger of itself and above, atomically, and returns
	// the result. It may be repeated. Errors: leaf.ErrUnknownTag,
	// leaf.ErrOverflow if above is larger than MaxMaxID.
	Raise(ctx context.Context, tag string, above int64) (maxID int64, err error)

	// Lookup returns one row, or leaf.ErrUnknownTag. It reads from where Reserve
	// writes, never from a replica.
	Lookup(ctx context.Context, tag string) (Row, error)

	// Rows returns all rows, in no particular order. Rows whose tag name is not
	// valid (leaf.ValidateTag) are included; the engine skips them. A row that cannot be
	// read, or whose options cannot, has a Problem and hides no other row.
	Rows(ctx context.Context) ([]Row, error)
}

// Request is what Reserve should do.
type Request struct {
	Tag    string
	Step   int64 // the row's own step as the caller believes it to be; 0 if unknown
	Length int64 // number of IDs, if Step is still right; 1 to MaxStep
	Min    int64 // bounds of the length if Step is wrong; 1 <= Min <= Max <= MaxStep
	Max    int64
}

// Validate returns leaf.ErrBadRequest if a field is outside its documented limits.
func (r Request) Validate() error {
	if err := leaf.ValidateTag(r.Tag); err != nil {
		return err
	}
	switch {
	case r.Step < 0 || r.Step > MaxStep:
		return leaf.BadField("step", r.Step, fmt.Sprintf("must be 0 to %d", MaxStep))
	case r.Step != 0 && (r.Length < 1 || r.Length > MaxStep):
		return leaf.BadField("length", r.Length, fmt.Sprintf("must be 1 to %d", MaxStep))
	case r.Min < 1 || r.Min > r.Max || r.Max > MaxStep:
		return leaf.BadField("bounds", fmt.Sprintf("%d..%d", r.Min, r.Max), fmt.Sprintf("must lie in order within 1 to %d", MaxStep))
	}
	return nil
}

// LengthFor returns the length of the range for a row whose own step is step.
func (r Request) LengthFor(step int64) int64 {
	if step == r.Step {
		return r.Length
	}
	return min(max(step, r.Min), r.Max)
}

// Reservation is a committed range and the row's own step at that moment.
type Reservation struct {
	Range leaf.Range
	Step  int64
}

// Row is one row of leaf_alloc with its options.
type Row struct {
	Tag         string
	MaxID       int64 // end of the ranges handed out so far; for display, never a source of ranges (rule M)
	Step        int64 // as stored, which may be outside 1..MaxStep
	Description string
	UpdateTime  time.Time // zero if unknown
	Options     Options

	Problem error // why the row cannot be read; then the other fields but Tag are zero
}

// errBelowZero: no node and no command writes such a row. A node that took ranges of the tag
// treats it as what it is, a row that went down.
var errBelowZero = errors.New("must be 0 or more")

// CheckRow returns leaf.ErrInvalidRow, naming column, value and limit, if the row
// may not be advanced, or leaf.ErrOverflow if length more IDs do not fit.
func CheckRow(tag string, maxID, step, length int64) error {
	switch {
	case step < 1 || step > MaxStep:
		return fmt.Errorf("%w: tag %q has step=%d, must be 1 to %d", leaf.ErrInvalidRow, tag, step, MaxStep)
	case maxID < 0:
		return fmt.Errorf("%w: tag %q has max_id=%d, %w", leaf.ErrInvalidRow, tag, maxID, errBelowZero)
	case maxID > MaxMaxID-length:
		return fmt.Errorf("%w: tag %q has max_id=%d, and %d more IDs would pass %d", leaf.ErrOverflow, tag, maxID, length, int64(MaxMaxID))
	}
	return nil
}

// CheckReturn returns leaf.ErrBadRequest if max_id may not be lowered from hi to lo.
func CheckReturn(hi, lo int64) error {
	if lo < 0 || lo >= hi || hi > MaxMaxID {
		return leaf.BadField("returned range", leaf.Range{Lo: lo, Hi: hi}, fmt.Sprintf("must be a range within 0 to %d", int64(MaxMaxID)))
	}
	return nil
}

// Binding ties a database to its part of a division of tags (rule K).
type Binding struct {
	Store  string // this database's name within the rule, "default" if it is the only one
	Rule   string // fingerprint of the rule; empty if there is only one database
	Stores string // the names of all databases of the rule, with a comma between two; what follows from Rule is not compared
}

// Same reports whether both bindings are one: by the same rule, the same part of it. Only
// databases have any name.
func (b Binding) Same(other Binding) bool {
	return b.Rule == other.Rule && (b.Rule == "" || b.Store == other.Store)
}
