package sqldb

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/segment"
)

// Reserve implements segment.Store.
func (s *Store) Reserve(ctx context.Context, req segment.Request) (res segment.Reservation, err error) {
	if err := req.Validate(); err != nil {
		return res, err
	}
	defer s.done(ctx, time.Now(), &err, "reserve tag %q", req.Tag)
	if s.dialect.reserveOnce == nil {
		return s.reserveLocked(ctx, req)
	}
	if s.inGalera() {
		return s.reserveInGalera(ctx, req)
	}
	for range 3 {
		res, matched, err := s.dialect.reserveOnce(ctx, s, req)
		if s.inGalera() { // this connection was new: what it answered is not believed
			return s.reserveInGalera(ctx, req)
		}
		if matched || err != nil && s.dialect.kindOf(err) != kindBadText {
			return res, err
		}
		// Nothing was written, or the database cannot express the name. Look before
		// locking for longer than one message: locking a row that does not exist locks a
		// gap, and a name that the column's character set cannot express would be
		// searched for, and locked, in the whole table.
		row, err := s.readRow(ctx, s.read, req.Tag)
		if err != nil {
			return segment.Reservation{}, err
		}
		length := req.LengthFor(row.step)
		if err := segment.CheckRow(req.Tag, row.maxID, row.step, length); err != nil {
			return segment.Reservation{}, err
		}
		if row.step == req.Step {
			break // it was written meanwhile, or there is no such statement for it
		}
		req.Step, req.Length = row.step, length
	}
	return s.reserveLocked(ctx, req)
}

// reserveLocked reserves in a transaction: whatever the row holds, it either
// yields a range or says why it cannot.
func (s *Store) reserveLocked(ctx context.Context, req segment.Request) (segment.Reservation, error) {
	var res segment.Reservation
	reserve := func(conn *sql.Conn) error {
		row, err := s.lockRow(ctx, conn, req.Tag)
		if err != nil {
			return err
		}
		length := req.LengthFor(row.step)
		if err := segment.CheckRow(req.Tag, row.maxID, row.step, length); err != nil {
			return err
		}
		if err := s.sameOwner(ctx, conn); err != nil {
			return err
		}
		res = segment.Reservation{Range: leaf.Range{Lo: row.maxID, Hi: row.maxID + length}, Step: row.step}
		return s.advance(ctx, conn, req.Tag, row.maxID, res.Range.Hi)
	}
	if err := s.again(ctx, func() error { return s.transact(ctx, reserve) }); err != nil {
		return segment.Reservation{}, err
	}
	return res, nil
}

// errMoved says that the row was not moved by what the load asked for.
func errMoved(from, to, length int64) error {
	return fmt.Errorf("the database took max_id from %d to %d where %d was to be added: no range", from, to, length)
}

// rangeBelow returns the reservation that ends at hi, after checking that a
// database which obeys the statement could have answered so.
func rangeBelow(hi, length, step int64) (segment.Reservation, error) {
	if hi-length < 0 || hi > segment.MaxMaxID {
		return segment.Reservation{}, fmt.Errorf("the database reports max_id=%d after adding %d: no range", hi, length)
	}
	return segment.Reservation{Range: leaf.Range{Lo: hi - length, Hi: hi}, Step: step}, nil
}

// state is what a statement needs to know of a row.
type state struct{ maxID, step int64 }

// lockRow reads a row and keeps it locked until the transaction ends.
func (s *Store) lockRow(ctx context.Context, conn *sql.Conn, tag string) (state, error) {
	return s.scanRow(ctx, conn, s.sql.lock, tag)
}

// readRow reads a row without locking it.
func (s *Store) readRow(ctx context.Context, q querier, tag string) (state, error) {
	return s.scanRow(ctx, q, s.sql.read, tag)
}

func (s *Store) scanRow(ctx context.Context, q querier, query, tag string) (state, error) {
	var name string
	var row state
	ok, err := queryRow(ctx, q, query, []any{tag}, []any{&name, &row.maxID, &row.step})
	switch {
	case err != nil && s.dialect.kindOf(err) == kindBadText:
		return state{}, leaf.ErrUnknownTag // the database has no such character, hence no such tag
	case errors.Is(err, errUnreadable):
		return state{}, fmt.Errorf("%w: %w", leaf.ErrInvalidRow, err)
	case err != nil:
		return state{}, fmt.Errorf("read row: %w", err)
	case !ok:
		return state{}, leaf.ErrUnknownTag
	case name != tag:
		return state{}, fmt.Errorf("%w: the table compares %q as equal, but it is another tag", leaf.ErrUnknownTag, name)
	}
	return row, nil
}

// advance sets max_id of a locked row from one value to another.
func (s *Store) advance(ctx context.Context, conn *sql.Conn, tag string, from, to int64) error {
	result, err := conn.ExecContext(ctx, s.sql.advance, to, tag, tag, from)
	if err != nil {
		return fmt.Errorf("update row: %w", err)
	}
	switch n, err := result.RowsAffected(); {
	case err != nil:
		return fmt.Errorf("update row: %w", err)
	case n == 0:
		return fmt.Errorf("update row: another writer changed max_id=%d although the row is locked", from)
	case n > 1:
		return errTwoRows
	}
	return s.checkWritten(ctx, conn, tag, to)
}

// checkWritten reads the row that a transaction has just written: a trigger may have written
// another number.
func (s *Store) checkWritten(ctx context.Context, conn *sql.Conn, tag string, maxID int64) error {
	row, err := s.readRow(ctx, conn, tag)
	if err == nil && row.maxID != maxID {
		err = fmt.Errorf("%w: the database wrote max_id=%d where it was to be %d, as a trigger of leaf_alloc can do; nothing was changed", leaf.ErrConflict, row.maxID, maxID)
	}
	return err
}

// Raise implements segment.Store.
func (s *Store) Raise(ctx context.Context, tag string, above int64) (maxID int64, err error) {
	if err := leaf.ValidateTag(tag); err != nil {
		return 0, err
	}
	if above > segment.MaxMaxID {
		return 0, fmt.Errorf("raise tag %q: %w: %d is above %d", tag, leaf.ErrOverflow, above, int64(segment.MaxMaxID))
	}
	defer s.done(ctx, time.Now(), &err, "raise tag %q to %d", tag, above)
	err = s.transact(ctx, func(conn *sql.Conn) error {
		row, err := s.lockRow(ctx, conn, tag) // not a plain reading: PostgreSQL waits for the standby at the end of a lock, too
		if err == nil {
			err = s.sameOwner(ctx, conn) // also of a row that is high enough: it may be another cluster's
		}
		if err != nil {
			return err
		}
		if maxID = max(row.maxID, above); maxID == row.maxID {
			return nil
		}
		return s.advance(ctx, conn, tag, row.maxID, maxID)
	})
	if err != nil {
		return 0, err
	}
	return maxID, nil
}
