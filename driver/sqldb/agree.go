package sqldb

import (
	"context"
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
	return s.record(ctx, name, value)
}

// record writes value under name in leaf_meta, unless something is there, and returns what is.
func (s *Store) record(ctx context.Context, name, value string) (recorded string, err error) {
	err = s.exec(ctx, s.sql.insertName, name, value)
	if err != nil && s.dialect.kindOf(err) != kindDuplicate { // else another node was faster
		return "", fmt.Errorf("record %s in leaf_meta: %w", name, err)
	}
	return s.agreed(ctx, name)
}

func (s *Store) agreed(ctx context.Context, name string) (value string, err error) {
	err = s.lookIn(ctx, s.write, func(q querier) error {
		_, err := queryRow(ctx, q, s.sql.named, []any{name}, []any{&value})
		return err
	})
	if err != nil {
		return "", fmt.Errorf("read %s in leaf_meta: %w", name, err)
	}
	return value, nil
}
