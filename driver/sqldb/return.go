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

// ReturnUnused implements segment.Store.
func (s *Store) ReturnUnused(ctx context.Context, tag string, hi, lo int64) (err error) {
	if err := leaf.ValidateTag(tag); err != nil {
		return err
	}
	if err := segment.CheckReturn(hi, lo); err != nil {
		return err
	}
	defer s.done(ctx, time.Now(), &err, "return tag %q from %d to %d", tag, hi, lo)
	if s.dialect.returnUnused == nil || s.inGalera() {
		return s.returnLocked(ctx, tag, hi, lo)
	}
	conn, err := s.alive(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }()
	// database/sql repeats a statement of a DB, but not of a Conn, when the driver
	// calls the connection bad.
	err = s.dialect.returnUnused(ctx, s, conn, tag, hi, lo)
	switch kind := s.dialect.kindOf(err); {
	case err == nil, errors.Is(err, leaf.ErrConflict), errors.Is(err, leaf.ErrUnknownTag):
		return err
	case kind == kindSerialize, kind == kindBadText:
		// The server rolled it back because of another writer of the row, or refused it because
		// the database cannot express the name. Read whether max_id still is hi.
		row, readErr := s.readRow(ctx, s.read, tag)
		if readErr != nil {
			return readErr
		}
		if row.maxID != hi {
			return notAt(row, hi)
		}
	}
	discard(conn)
	return err
}

func (s *Store) returnLocked(ctx context.Context, tag string, hi, lo int64) error {
	return s.transact(ctx, func(conn *sql.Conn) error {
		row, err := s.lockRow(ctx, conn, tag)
		if err != nil {
			return err
		}
		if row.maxID != hi {
			return notAt(row, hi)
		}
		if err := s.sameOwner(ctx, conn); err != nil {
			return err
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
