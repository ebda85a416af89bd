package world

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/internal/sim/sched"
	"github.com/leaf-idgen/leaf/segment"
)

// DatabaseClient is a node's way to a database. It outlives the node's processes.
type DatabaseClient struct {
	Link

	Other bool // in a split brain: it talks to the second side

	db *Database
}

// Client returns a new way to the database.
func (d *Database) Client() *DatabaseClient {
	c := &DatabaseClient{db: d, Link: Link{Faults: d.Faults}}
	c.Server = c.side().server
	d.clients = append(d.clients, c)
	return c
}

// Switch makes the client talk to the other side, if there is one, or back.
func (c *DatabaseClient) Switch(other bool) {
	c.Other = other
	c.Server = c.side().server
}

func (c *DatabaseClient) side() *side {
	if c.Other && len(c.db.sides) > 1 {
		return c.db.sides[1]
	}
	return c.db.sides[0]
}

// Store is one process's segment.Store.
type Store struct {
	// Delivered is told what Reserve returned. If it is not sure, the caller may have
	// given up before.
	Delivered func(tag string, r leaf.Range, sure bool)

	// Read is told each row that Lookup and Rows returned to a caller that still waited.
	Read func(row segment.Row)

	// Entered is told each entry on the list of nodes that is tried.
	Entered func(m segment.Member)

	c *DatabaseClient
	p *sched.Process
}

var _ segment.Store = (*Store)(nil)

// For returns the store of a process.
func (c *DatabaseClient) For(p *sched.Process) *Store { return &Store{c: c, p: p} }

// ask is a call about a row (or, with tag "", about all) with what befalls it at the
// database.
func ask[T any](ctx context.Context, s *Store, what, tag string, once Once, effect func(x *side) (T, error)) (T, error) {
	var none T
	d := s.c.db
	rng := d.s.Rand()
	run := func() (T, error) { return effect(s.c.side()) }
	if draw(rng, d.Hang) {
		d.Faults.Hit(CallHangs)
		late, cancel := s.p.WithTimeout(context.Background(), time.Duration(rng.Int64N(int64(time.Minute))))
		defer cancel()
		value, err := Call(late, s.p, &s.c.Link, what, once, run)
		_ = s.p.Wait(late, nil, 0)
		return value, err
	}
	if d.Slow > 0 {
		d.Faults.Hit(DatabaseSlow)
		if err := s.pause(ctx, nil, time.Duration(rng.Int64N(int64(d.Slow)))); err != nil {
			return none, fmt.Errorf("%s: %w", what, err)
		}
	}
	if free := d.locked[tag]; free != nil && tag != "" {
		d.Faults.Hit(RowLocked)
		if err := s.pause(ctx, free, 0); err != nil {
			if !s.c.Server.Down && rng.IntN(2) == 0 { // the statement stays in the queue of the row
				go1(d, free, run)
			}
			return none, fmt.Errorf("%s: row of tag %q is locked: %w", what, tag, err)
		}
	}
	return Call(ctx, s.p, &s.c.Link, what, once, run)
}

// go1 runs an effect once the row is free, for a caller that gave up.
func go1[T any](d *Database, free chan struct{}, run func() (T, error)) {
	w := d.s.World()
	w.Go(func() {
		_ = w.Wait(context.Background(), free, 0)
		if !d.Down() {
			_, _ = run()
		}
	})
}

// pause waits, at the server, for wake or a time.
func (s *Store) pause(ctx context.Context, wake <-chan struct{}, d time.Duration) error {
	s.p.Boundary()
	if wake == nil && d <= 0 {
		return nil
	}
	err := s.p.Wait(ctx, wake, d)
	s.p.Boundary()
	return err
}

// Bind implements segment.Store.
func (s *Store) Bind(ctx context.Context, b segment.Binding) error {
	_, err := ask(ctx, s, "bind", "", Repeatable, func(x *side) (struct{}, error) {
		err := x.store.Bind(context.Background(), b)
		if err == nil {
			x.bound = &b
		}
		return struct{}{}, err
	})
	return err
}

// Reserve implements segment.Store.
func (s *Store) Reserve(ctx context.Context, req segment.Request) (segment.Reservation, error) {
	d := s.c.db
	res, err := ask(ctx, s, "reserve", req.Tag, Repeatable, func(x *side) (segment.Reservation, error) {
		res, err := x.store.Reserve(context.Background(), req)
		if err != nil {
			return res, err
		}
		d.s.Note(d.Name, req.Tag, res.Range.Lo, res.Range.Hi)
		d.note(x, req.Tag)
		d.reserved(req.Tag, res.Range)
		if err := d.commit("reserve"); err != nil {
			return segment.Reservation{}, err
		}
		return res, nil
	})
	if err == nil && s.Delivered != nil {
		s.Delivered(req.Tag, res.Range, ctx.Err() == nil)
	}
	return res, err
}

// ReturnUnused implements segment.Store.
func (s *Store) ReturnUnused(ctx context.Context, tag string, hi, lo int64) error {
	d := s.c.db
	_, err := ask(ctx, s, "return", tag, AtMostOnce, func(x *side) (struct{}, error) {
		if err := x.store.ReturnUnused(context.Background(), tag, hi, lo); err != nil {
			return struct{}{}, err
		}
		d.s.Note(d.Name, "returned "+tag, lo, hi)
		d.note(x, tag)
		d.returned(tag, hi, lo)
		return struct{}{}, d.commit("return")
	})
	return err
}

// Raise implements segment.Store.
func (s *Store) Raise(ctx context.Context, tag string, above int64) (int64, error) {
	d := s.c.db
	return ask(ctx, s, "raise", tag, Repeatable, func(x *side) (int64, error) {
		maxID, err := x.store.Raise(context.Background(), tag, above)
		if errors.Is(err, leaf.ErrUnknownTag) {
			d.used[tag] = max(d.used[tag], above) // the nodes refuse a new row below it
		}
		if err != nil {
			return 0, err
		}
		d.s.Note(d.Name, "raised "+tag, above, maxID)
		d.used[tag] = max(d.used[tag], maxID)
		d.note(x, tag)
		if err := d.commit("raise"); err != nil {
			return 0, err
		}
		return maxID, nil
	})
}

// Lookup implements segment.Store.
func (s *Store) Lookup(ctx context.Context, tag string) (segment.Row, error) {
	row, err := ask(ctx, s, "look up", tag, Repeatable, func(x *side) (segment.Row, error) {
		row, err := x.store.Lookup(context.Background(), tag)
		row.UpdateTime = s.c.db.changed(x, tag)
		return row, err
	})
	s.read(ctx, err, row)
	return row, err
}

// Rows implements segment.Store. The rows are sorted: equal seeds, equal order.
func (s *Store) Rows(ctx context.Context) ([]segment.Row, error) {
	rows, err := ask(ctx, s, "read rows", "", Repeatable, func(x *side) ([]segment.Row, error) {
		rows, err := x.store.Rows(context.Background())
		slices.SortFunc(rows, func(a, b segment.Row) int { return cmp.Compare(a.Tag, b.Tag) })
		if d := s.c.db; err == nil && draw(d.s.Rand(), d.CutList) {
			d.Faults.Hit(ListCut)
			rows = rows[:d.s.Rand().IntN((len(rows)+1)/2+1)/2]
		}
		return rows, err
	})
	s.read(ctx, err, rows...)
	return rows, err
}

func (s *Store) read(ctx context.Context, err error, rows ...segment.Row) {
	if s.Read == nil || err != nil || ctx.Err() != nil {
		return
	}
	for _, row := range rows {
		s.Read(row)
	}
}
