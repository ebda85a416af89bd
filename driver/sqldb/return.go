package sqldb

import (
	"context"
	"database/sql"
	"fmt"
	"time"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/segment"
)

// ReturnUnused implements segment.Store. It is a transaction that reads the row behind the change: a trigger can have written
// another number, and below lo there are numbers in use. Whose the database is it reads in a statement of its own, because a
// statement that changes a row means the same on a replica that has no other table. The change and the COMMIT are sent once.
func (s *Store) ReturnUnused(ctx context.Context, tag string, hi, lo int64) (err error) {
	if err := leaf.ValidateTag(tag); err != nil {
		return err
	}
	if err := segment.CheckReturn(hi, lo); err != nil {
		return err
	}
	defer s.done(ctx, time.Now(), &err, "return tag %q from %d to %d", tag, hi, lo)
	return s.transact(ctx, func(conn *sql.Conn) error {
		row, err := s.lockRow(ctx, conn, tag)
		if err != nil {
			return err
		}
		if row.maxID != hi {
			return fmt.Errorf("%w: max_id is %d, not %d", leaf.ErrConflict, row.maxID, hi)
		}
		if err := s.sameOwner(ctx, conn); err != nil {
			return err
		}
		return s.advance(ctx, conn, tag, hi, lo)
	})
}
