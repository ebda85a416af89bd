package world

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/driver/memory"
	"github.com/leaf-idgen/leaf/internal/sim/sched"
	"github.com/leaf-idgen/leaf/segment"
)

// The kinds of faults of databases.
const (
	DatabaseDown  Kind = "database down"
	DatabaseSlow  Kind = "database slow"
	CommitError   Kind = "commit error after the commit"
	CallHangs     Kind = "call hangs beyond its deadline"
	ListCut       Kind = "list of tags without rows, or without most"
	RowLocked     Kind = "row locked"
	Failover      Kind = "failover without loss"
	FailoverLoses Kind = "failover to a replica that misses commits"
	Restored      Kind = "database restored from a backup"
	SplitBrain    Kind = "split brain"
	RowRecreated  Kind = "row deleted and re-created"
	RowDeleted    Kind = "row deleted"
	RowCreated    Kind = "row created"
	StepEdited    Kind = "step edited"
	StepHostile   Kind = "step edited to a hostile value"
)

// ErrCommit is what a caller gets whose transaction was committed all the same.
var ErrCommit = errors.New("world: commit failed")

// Database is a SQL database with a table leaf_alloc: driver/memory behind links. It
// keeps its history, so that it can forget the end of it.
//
// It has one side or, in a split brain, two: each is a server with rows of its own,
// and each client talks to one of them.
type Database struct {
	Name   string
	Faults *Faults
	Start  time.Time // what its clock, which is right, showed at the beginning of the run

	CommitError float64       // chance per write to fail after its commit
	CutList     float64       // chance per reading of all rows to return none, or few
	Hang        float64       // chance per call to return late, whatever its deadline
	Slow        time.Duration // every call takes up to this much longer

	// Changed is called after every change that is no call of a client's, such as a
	// failover.
	Changed func(k Kind)

	// Reserved is told each range that is reserved, whether its caller learns of it or not.
	Reserved func(tag string, r leaf.Range)

	// Next is called once, at the moment of the next reservation, if it is set.
	Next func()

	s       *sched.Scheduler
	sides   []*side
	settled int // commits that nothing loses
	clients []*DatabaseClient
	locked  map[string]chan struct{} // closed when the row is free again
	used    map[string]int64
	shared  map[string]int64 // the end of what was reserved more than once, by tag
	tally   map[string]Tally
}

// Tally is what became of a tag's numbers, over the whole run.
type Tally struct {
	Reserved int64 // numbers of committed ranges, whether their caller learned of them or not
	Returned int64 // numbers of committed returns
}

// side is one server and its rows.
type side struct {
	server *Server
	store  *memory.Store
	past   []change
	board  []boardChange
	bound  *segment.Binding
}

// change is a commit: from then on the row was as it says.
type change struct {
	at   time.Duration
	row  segment.Row
	gone bool
}

// NewDatabase returns an empty database that is up.
func NewDatabase(s *sched.Scheduler, name string, faults *Faults) *Database {
	return &Database{
		Name: name, Faults: faults, s: s,
		sides:  []*side{{server: &Server{Name: name}, store: memory.New()}},
		locked: map[string]chan struct{}{}, used: map[string]int64{}, shared: map[string]int64{}, tally: map[string]Tally{},
	}
}

// RecordRule makes the database a part of a tag rule, as an operator does.
func (d *Database) RecordRule(b segment.Binding) {
	for _, x := range d.sides {
		x.bound = &b
		_ = x.store.RecordRule(b)
	}
}

// Tally returns what became of a tag's numbers.
func (d *Database) Tally(tag string) Tally { return d.tally[tag] }

// Used returns the end of the tag's ranges that clients reserved, on any side and
// before any loss, without what they returned, or to where a repair moved the row. A
// repair counts without a row, too.
func (d *Database) Used(tag string) int64 { return d.used[tag] }

// MaxID returns the tag's lowest max_id on any side, and whether it has a row there.
func (d *Database) MaxID(tag string) (maxID int64, ok bool) {
	for _, x := range d.sides {
		if row, err := x.store.Lookup(context.Background(), tag); err == nil && (!ok || row.MaxID < maxID) {
			maxID, ok = row.MaxID, true
		}
	}
	return maxID, ok
}

// Everywhere reports whether the tag has a row on every side.
func (d *Database) Everywhere(tag string) bool {
	for _, x := range d.sides {
		if _, err := x.store.Lookup(context.Background(), tag); err != nil {
			return false
		}
	}
	return true
}

// Row returns the row on the first side.
func (d *Database) Row(tag string) (segment.Row, bool) {
	row, err := d.sides[0].store.Lookup(context.Background(), tag)
	return row, err == nil
}

// Put writes a row on every side, as an administrator does with SQL, or deletes it.
func (d *Database) Put(k Kind, row segment.Row, gone bool) {
	for _, x := range d.sides {
		if gone {
			x.store.Remove(row.Tag)
		} else {
			x.store.Put(row)
		}
		x.past = append(x.past, change{d.s.Elapsed(), row, gone})
	}
	d.happened(k)
}

func (d *Database) happened(k Kind) {
	d.s.Note(d.Name, string(k))
	if d.Changed != nil {
		d.Changed(k)
	}
}

// Settled says that what was committed so far is in every replica and backup.
func (d *Database) Settled() { d.settled = d.commits() }

// SetDown stops or starts the servers.
func (d *Database) SetDown(down bool) {
	for _, x := range d.sides {
		x.server.Down = down
	}
}

// Down reports whether the first side is down.
func (d *Database) Down() bool { return d.sides[0].server.Down }

// commits returns the number of commits of the first side.
func (d *Database) commits() int { return len(d.sides[0].past) }

// Before returns the number of commits until a moment.
func (d *Database) Before(at time.Duration) int {
	past := d.sides[0].past
	n, _ := slices.BinarySearchFunc(past, at, func(c change, at time.Duration) int { return int(c.at - at) })
	return n
}

// as returns a server with the rows after the first n commits of the first side.
func (d *Database) as(n int, name string) *side {
	from := d.sides[0]
	x := &side{server: &Server{Name: name}, store: memory.New(), past: slices.Clone(from.past[:n]), bound: from.bound}
	rows := map[string]change{}
	for _, c := range x.past {
		rows[c.row.Tag] = c
	}
	for _, tag := range slices.Sorted(maps.Keys(rows)) {
		if c := rows[tag]; !c.gone {
			x.store.Put(c.row)
		}
	}
	for _, c := range from.board {
		if c.after <= n {
			c.do(x.store)
			x.board = append(x.board, c)
		}
	}
	if x.bound != nil {
		_ = x.store.RecordRule(*x.bound)
	}
	return x
}

// GoBack replaces the database by one that has the first n commits only: a replica
// that missed the others, a backup. It is not for a split brain. What was there before
// Settled is never lost: a run without a row would issue nothing.
func (d *Database) GoBack(k Kind, n int) {
	down := d.Down()
	d.sides = []*side{d.as(min(max(n, d.settled), d.commits()), d.Name)}
	d.SetDown(down)
	d.relink()
	d.happened(k)
}

// LoseLast is GoBack by a number of commits.
func (d *Database) LoseLast(k Kind, missed int) { d.GoBack(k, d.commits()-missed) }

// Split makes a second server, which missed the last commits, beside the first one. A
// client uses it if its Other says so.
func (d *Database) Split(missed int) {
	if !d.IsSplit() {
		d.sides = append(d.sides, d.as(max(d.commits()-missed, d.settled), d.Name+" (promoted)"))
		d.relink()
		d.happened(SplitBrain)
	}
}

// IsSplit reports whether there are two sides.
func (d *Database) IsSplit() bool { return len(d.sides) > 1 }

// Join ends a split brain: the rows of one side stay, for all nodes.
func (d *Database) Join(winner int) {
	if d.IsSplit() {
		d.sides = d.sides[winner%2 : winner%2+1]
		d.relink()
		d.happened(SplitBrain)
	}
}

func (d *Database) relink() {
	for _, c := range d.clients {
		c.Server = c.side().server
	}
}

// Lock locks a row for a while, as a transaction that was left open does.
func (d *Database) Lock(tag string, while time.Duration) {
	if d.locked[tag] != nil {
		return
	}
	free := make(chan struct{})
	d.locked[tag] = free
	d.s.After(while, func() {
		delete(d.locked, tag)
		close(free)
	})
}

// note brings history and counts up to date after a write to a row.
func (d *Database) note(x *side, tag string) {
	row, err := x.store.Lookup(context.Background(), tag)
	x.past = append(x.past, change{d.s.Elapsed(), row, err != nil})
	if err != nil {
		x.past[len(x.past)-1].row.Tag = tag
	}
}

// changed returns when a row was changed last, by the database's clock.
func (d *Database) changed(x *side, tag string) time.Time {
	for _, c := range slices.Backward(x.past) {
		if c.row.Tag == tag {
			return d.Start.Add(c.at)
		}
	}
	return time.Time{}
}

func (d *Database) reserved(tag string, r leaf.Range) {
	t := d.tally[tag]
	t.Reserved += r.Len()
	d.tally[tag] = t
	if r.Lo < d.used[tag] {
		d.shared[tag] = max(d.shared[tag], min(d.used[tag], r.Hi))
	}
	d.used[tag] = max(d.used[tag], r.Hi)
	if d.Reserved != nil {
		d.Reserved(tag, r)
	}
	if f := d.Next; f != nil {
		d.Next = nil
		f()
	}
}

func (d *Database) returned(tag string, hi, lo int64) {
	t := d.tally[tag]
	t.Returned += hi - lo
	d.tally[tag] = t
	if d.used[tag] == hi { // what another client holds, too, is still in use
		d.used[tag] = max(lo, d.shared[tag])
	}
}

// commit is the end of a write at the server.
func (d *Database) commit(what string) error {
	if draw(d.s.Rand(), d.CommitError) {
		d.Faults.Hit(CommitError)
		return fmt.Errorf("%s: %w", what, ErrCommit)
	}
	return nil
}
