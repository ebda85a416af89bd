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

// limitColumns are those of a limit, which older tables leaf_tag_option lack. The zero of each
// is its default, so older programs go on writing their rows; one that changes the options of
// a tag removes its limit.
var limitColumns = []string{"rate_limit", "quota", "blocked"}

// layoutAge is how long the store believes that the columns for limits are missing. It is long,
// because some servers log each query for a table that does not exist.
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

// readLimit returns the limit of a tag or a client by one of the statements for it, zero if
// there is none.
func readLimit(ctx context.Context, q querier, query, of string) (r limit.Rule, err error) {
	var name string
	ok, err := queryRow(ctx, q, query, []any{of}, []any{&name, &r.Rate, &r.Quota, &r.Blocked})
	if err != nil {
		return limit.Rule{}, fmt.Errorf("read limit: %w", err)
	}
	if !ok || name != of {
		return limit.Rule{}, nil
	}
	return r, nil
}

// SetTagLimit implements limit.Store.
func (s *Store) SetTagLimit(ctx context.Context, tag string, c limit.Change) (r limit.Rule, err error) {
	if err := errors.Join(leaf.ValidateTag(tag), c.Validate()); err != nil {
		return r, err
	}
	defer s.done(ctx, time.Now(), &err, "limit tag %q", tag)
	has := func(l *layout) bool { return l.limits }
	err = s.withTables(ctx, has, "limits of tags need columns of the table leaf_tag_option", func(*layout) error {
		return s.again(ctx, func() error {
			return s.change(ctx, func(conn *sql.Conn) error {
				if _, err := s.lockRow(ctx, conn, tag); err != nil {
					return err
				}
				was, err := readLimit(ctx, conn, s.sql.limit, tag)
				if err != nil {
					return err
				}
				r = c.ApplyTo(was)
				return s.putOptions(ctx, conn, tag, s.sql.putLimit, r.Rate, r.Quota, r.Blocked)
			})
		})
	})
	if err != nil {
		return limit.Rule{}, err
	}
	return r, nil
}

// SetClientLimit implements limit.Store. A client has no row that could be locked before it has
// a limit. So the change writes its own fields first, and waits there for another one.
func (s *Store) SetClientLimit(ctx context.Context, client string, c limit.Change) (r limit.Rule, err error) {
	if err := errors.Join(limit.ValidateClient(client), c.Validate()); err != nil {
		return r, err
	}
	defer s.done(ctx, time.Now(), &err, "limit client %q", client)
	first := c.ApplyTo(limit.Rule{})
	put := s.dialect.bind(insertClient + s.dialect.onConflict("client_name", append(changedColumns(c), "update_time")...))
	has := func(l *layout) bool { return l.clients }
	err = s.withTables(ctx, has, "limits of clients need the table leaf_client_option", func(*layout) error {
		return s.again(ctx, func() error {
			return s.change(ctx, func(conn *sql.Conn) error {
				if _, err := conn.ExecContext(ctx, put, client, first.Rate, first.Quota, first.Blocked); err != nil {
					return err
				}
				if r, err = readLimit(ctx, conn, s.sql.clientLimit, client); err != nil || r != (limit.Rule{}) {
					return err
				}
				_, err := conn.ExecContext(ctx, s.sql.deleteClient, client)
				return err
			})
		})
	})
	if err != nil {
		return limit.Rule{}, err
	}
	return r, nil
}

const insertClient = "INSERT INTO leaf_client_option (client_name, rate_limit, quota, blocked, update_time) VALUES (?, ?, ?, ?, CURRENT_TIMESTAMP)"

// changedColumns returns those of limitColumns that a change writes.
func changedColumns(c limit.Change) (columns []string) {
	for i, set := range []bool{c.Rate != nil, c.Quota != nil, c.Blocked != nil} {
		if set {
			columns = append(columns, limitColumns[i])
		}
	}
	return columns
}
