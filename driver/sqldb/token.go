package sqldb

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/leaf-idgen/leaf/internal/auth"
	"github.com/leaf-idgen/leaf/segment"
)

var _ auth.Store = (*Store)(nil)

// spareTokens is how many more tokens than auth.MaxTokens are read: of two that are created at once, one
// can be one too many, and rows that Leaf did not write take a place, too. Without it the last names
// would open nothing.
const spareTokens = auth.MaxTokens

// tokenStatements are the texts for leaf_token.
type tokenStatements struct {
	all    string
	count  string
	create string // name, digest, roles, created
	revoke string // name
}

func (d *dialect) tokenStatements() tokenStatements {
	return tokenStatements{
		all:    fmt.Sprintf("SELECT name, digest, roles, created FROM leaf_token ORDER BY name LIMIT %d", auth.MaxTokens+spareTokens),
		count:  "SELECT COUNT(*) FROM leaf_token",
		create: d.bind("INSERT INTO leaf_token (name, digest, roles, created, update_time) VALUES (?, ?, ?, ?, CURRENT_TIMESTAMP)"),
		revoke: d.bind("DELETE FROM leaf_token WHERE name = ?"),
	}
}

// NamedTokens implements auth.Store. A row that cannot be read opens nothing, and hides no
// other.
func (s *Store) NamedTokens(ctx context.Context) (all []auth.Token, err error) {
	defer s.finishTokens(ctx, time.Now(), &err, "read named tokens")
	err = s.look(ctx, func(q querier) (err error) {
		all, err = s.scanTokens(ctx, q)
		return err
	})
	if err != nil && s.dialect.kindOf(err) == kindNoTable {
		return nil, nil // there are none
	}
	return all, err
}

func (s *Store) scanTokens(ctx context.Context, q querier) (all []auth.Token, err error) {
	err = eachRow(ctx, q, s.dialect.token.all, nil, func(rows *sql.Rows) error {
		var t auth.Token
		var roles string
		var created int64
		if err := rows.Scan(&t.Name, &t.Digest, &roles, &created); err != nil {
			return err
		}
		t.Created = time.Unix(created, 0).UTC()
		parsed, bad := auth.ParseRoles(strings.Fields(roles))
		t.Roles = parsed
		if bad == nil {
			bad = t.Validate()
		}
		if bad != nil {
			s.cfg.Logger.Warn("a row of leaf_token is left out, because Leaf did not write it", "store", s.Redacted(), "name", t.Name)
		} else {
			all = append(all, t)
		}
		return nil
	})
	return all, err
}

// CreateToken implements auth.Store.
func (s *Store) CreateToken(ctx context.Context, t auth.Token) (err error) {
	if err := t.Validate(); err != nil {
		return err
	}
	defer s.finishTokens(ctx, time.Now(), &err, "create token")
	err = s.change(ctx, func(conn *sql.Conn) error {
		var n int64
		if _, err := queryRow(ctx, conn, s.dialect.token.count, nil, []any{&n}); err != nil {
			return err
		}
		if n >= auth.MaxTokens {
			return auth.ErrTooManyTokens()
		}
		_, err := conn.ExecContext(ctx, s.dialect.token.create, t.Name, t.Digest, strings.Join(t.Roles.Words(), " "), t.Created.Unix())
		return err
	})
	if err != nil && s.dialect.kindOf(err) == kindDuplicate {
		return auth.ErrTokenExists(t.Name)
	}
	return err
}

// RevokeToken implements auth.Store.
func (s *Store) RevokeToken(ctx context.Context, name string) (err error) {
	if err := auth.CheckName(name); err != nil {
		return err
	}
	defer s.finishTokens(ctx, time.Now(), &err, "revoke token")
	return s.change(ctx, func(conn *sql.Conn) error {
		done, err := conn.ExecContext(ctx, s.dialect.token.revoke, name)
		if err != nil {
			return err
		}
		if n, err := done.RowsAffected(); err != nil || n > 0 {
			return err
		}
		return auth.ErrNoToken(name)
	})
}

// finishTokens finishes a call as Store.done does.
func (s *Store) finishTokens(ctx context.Context, start time.Time, err *error, step string) {
	s.finish(ctx, start, err, func(err error) error {
		if s.dialect.kindOf(err).missing() && !errors.Is(err, segment.ErrSchema) {
			return s.schemaError("the database has no usable table leaf_token", err)
		}
		return err
	}, "%s", step)
}
