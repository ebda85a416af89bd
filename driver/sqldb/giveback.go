package sqldb

import (
	"context"
	"database/sql"
	"fmt"
	"time"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/segment"
)

// GiveBack implements segment.Store.
func (s *Store) GiveBack(ctx context.Context, tag string, hi, lo int64) (err error) {
	if err := leaf.ValidateTag(tag); err != nil {
		return err
	}
	if err := segment.CheckGiveBack(hi, lo); err != nil {
		return err
	}
	defer s.done(ctx, time.Now(), &err, "give back tag %q from %d to %d", tag, hi, lo)
	if s.dialect.embedded {
		return s.giveBackLocked(ctx, tag, hi, lo) // no wire to lose a reply on
	}
	conn, err := s.alive(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }()
	// database/sql repeats a statement of a DB, but not of a Conn, when the driver
	// calls the connection bad.
	result, err := conn.ExecContext(ctx, s.sql.advanceAlone, lo, tag, tag, hi)
	switch {
	case err == nil:
		n, err := result.RowsAffected()
		switch {
		case err != nil || n == 1:
			return err
		case n > 1:
			return errTwoRows
		}
	case s.dialect.kindOf(err) == kindSerialize: // rolled back, because somebody else wrote the row
	case s.dialect.kindOf(err) == kindBadText: // refused, perhaps because the database cannot express the name
	default:
		discard(conn)
		return err
	}
	row, readErr := s.readRow(ctx, conn, tag)
	switch {
	case readErr != nil:
		return readErr
	case err != nil && row.maxID == hi:
		return err
	}
	return notAt(row, hi)
}

func (s *Store) giveBackLocked(ctx context.Context, tag string, hi, lo int64) error {
	return s.transact(ctx, func(conn *sql.Conn) error {
		row, err := s.lockRow(ctx, conn, tag)
		if err != nil {
			return err
		}
		if row.maxID != hi {
			return notAt(row, hi)
		}
		return s.advance(ctx, conn, tag, hi, lo)
	})
}

func notAt(row state, hi int64) error {
	return fmt.Errorf("%w: max_id is %d, not %d", leaf.ErrConflict, row.maxID, hi)
}

// alive returns a connection that has just answered.
func (s *Store) alive(ctx context.Context) (*sql.Conn, error) {
	for attempt := 0; ; attempt++ {
		conn, err := s.write.Conn(ctx)
		if err != nil {
			return nil, err
		}
		if err = conn.PingContext(ctx); err == nil {
			return conn, nil
		}
		discard(conn)
		_ = conn.Close()
		if ctx.Err() != nil || attempt > s.cfg.MaxConns {
			return nil, fmt.Errorf("ping: %w", err)
		}
	}
}
