package sqldb

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/internal/limit"
)

var _ limit.Store = (*Store)(nil)

// limitColumns are those of leaf_tag_option that older tables lack. The zero of each is
// its default, so older programs go on writing their rows; one that changes the options of
// a tag removes its limit.
var limitColumns = []string{"rate_limit", "quota", "blocked"}

// layoutAge is how long tables without room for limits are believed to have none. It
// is long, because some servers log each question about a table that is not there.
const layoutAge = time.Minute

// Limits implements limit.Store.
func (s *Store) Limits(ctx context.Context) (rules limit.Rules, err error) {
	defer s.done(ctx, time.Now(), &err, "read limits")
	if l := s.layout.Load(); l != nil && !l.complete() && time.Since(l.seen) > layoutAge {
		s.layout.CompareAndSwap(l, nil)
	}
	err = s.withLayout(ctx, func(l *layout) error {
		rules = limit.Rules{Tags: map[string]limit.Rule{}, Clients: map[string]limit.Rule{}}
		if l.limits {
			if err := s.scanLimits(ctx, s.sql.limits, rules.Tags); err != nil {
				return err
			}
		}
		if l.clients {
			return s.scanLimits(ctx, s.sql.clientLimits, rules.Clients)
		}
		return nil
	})
	if err != nil {
		return limit.Rules{}, err
	}
	return rules, nil
}

func (s *Store) scanLimits(ctx context.Context, query string, into map[string]limit.Rule) error {
	return s.look(ctx, func(q querier) error {
		return eachRow(ctx, q, query, nil, func(rows *sql.Rows) error {
			var name string
			var r limit.Rule
			err := rows.Scan(&name, &r.Rate, &r.Quota, &r.Blocked)
			into[name] = r
			return err
		})
	})
}

// readLimit returns the limit of one tag, zero if it has none.
func (s *Store) readLimit(ctx context.Context, q querier, l *layout, tag string) (r limit.Rule, err error) {
	if !l.limits {
		return limit.Rule{}, nil
	}
	var name string
	ok, err := queryRow(ctx, q, s.sql.limit, []any{tag}, []any{&name, &r.Rate, &r.Quota, &r.Blocked})
	if err != nil {
		return limit.Rule{}, fmt.Errorf("read limit: %w", err)
	}
	if !ok || name != tag {
		return limit.Rule{}, nil
	}
	return r, nil
}

// SetTagLimit implements limit.Store.
func (s *Store) SetTagLimit(ctx context.Context, tag string, r limit.Rule) (err error) {
	if err := errors.Join(leaf.ValidateTag(tag), r.Validate()); err != nil {
		return err
	}
	defer s.done(ctx, time.Now(), &err, "limit tag %q", tag)
	has := func(l *layout) bool { return l.limits }
	return s.withRoom(ctx, has, "limits of tags need columns of the table leaf_tag_option", func(l *layout) error {
		return s.change(ctx, func(conn *sql.Conn) error {
			if _, err := s.lockRow(ctx, conn, tag); err != nil {
				return err
			}
			options, err := s.readOptions(ctx, conn, tag)
			if err != nil {
				return err
			}
			return s.writeOptions(ctx, conn, l, tag, options, r)
		})
	})
}

// SetClientLimit implements limit.Store.
func (s *Store) SetClientLimit(ctx context.Context, client string, r limit.Rule) (err error) {
	if err := errors.Join(limit.ValidateClient(client), r.Validate()); err != nil {
		return err
	}
	defer s.done(ctx, time.Now(), &err, "limit client %q", client)
	has := func(l *layout) bool { return l.clients }
	return s.withRoom(ctx, has, "limits of clients need the table leaf_client_option", func(*layout) error {
		query, args := s.sql.putClient, []any{client, r.Rate, r.Quota, r.Blocked}
		if (r == limit.Rule{}) {
			query, args = s.sql.deleteClient, args[:1]
		}
		return s.change(ctx, func(conn *sql.Conn) error {
			_, err := conn.ExecContext(ctx, query, args...)
			return err
		})
	})
}
