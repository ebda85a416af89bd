package sqldb

import (
	"context"
	"database/sql"
	"fmt"
	"time"
)

// Agree records value under name in leaf_meta, unless something is recorded there, and returns what
// is: all nodes of the database get the same answer. It is "" for a database without leaf_meta. The
// name must be none that this package uses. Every error may be retried.
func (s *Store) Agree(ctx context.Context, name, value string) (recorded string, err error) {
	defer s.done(ctx, time.Now(), &err, "agree on %s", name)
	recorded, err = s.agreed(ctx, name)
	if recorded != "" || err != nil && !s.dialect.kindOf(err).missing() {
		return recorded, err
	}
	l, err := s.detect(ctx)
	if err != nil || !l.meta {
		return "", err
	}
	err = s.again(ctx, func() error {
		return s.change(ctx, func(conn *sql.Conn) error {
			_, err := conn.ExecContext(ctx, s.sql.insertName, name, value)
			return err
		})
	})
	if err != nil && s.dialect.kindOf(err) != kindDuplicate { // else another node was faster
		return "", fmt.Errorf("record %s in leaf_meta: %w", name, err)
	}
	return s.agreed(ctx, name)
}

func (s *Store) agreed(ctx context.Context, name string) (value string, err error) {
	_, err = queryRow(ctx, s.write, s.sql.named, []any{name}, []any{&value})
	if err != nil {
		return "", fmt.Errorf("read %s in leaf_meta: %w", name, err)
	}
	return value, nil
}
