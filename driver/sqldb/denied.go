package sqldb

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/go-sql-driver/mysql"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/segment"
)

// refused returns err with what the database refuses to the node, and what an administrator of the
// database must do; nil for an error of another kind. The database answers, so neither the network
// nor a missing table is the cause, and no command of leaf helps.
func (s *Store) refused(ctx context.Context, err error) error {
	if errors.Is(err, segment.ErrDenied) || errors.Is(err, errPooling) {
		return err
	}
	switch user := s.target.user.Username(); s.dialect.kindOf(err) {
	case kindLogin:
		if password, _ := s.target.user.Password(); password == masked {
			return fmt.Errorf("%w: the database does not let user %q in (%w); the password in the URL is %s, which stands for a password in our texts: write the real one in its place",
				segment.ErrDenied, user, err, masked)
		}
		return fmt.Errorf("%w: the database does not let user %q in (%w); correct the user or the password in the URL %s (a running node reads a new password from its file), or let the user connect",
			segment.ErrDenied, user, err, s.Redacted())
	case kindDenied:
		return fmt.Errorf("%w: user %q lacks a right (%w); %s", segment.ErrDenied, user, err, s.grant(ctx, err))
	case kindNoDatabase:
		return fmt.Errorf("%w: the database %q does not exist on the server (%w)%s; create the database, then %s", segment.ErrSchema, s.target.database, err, s.lost(), s.applyCommand())
	case kindPooling:
		return fmt.Errorf("%w (%w)", errPooling, err)
	}
	return nil
}

// masked is what redacted shows for a password.
const masked = "xxxxx"

// errPooling: a pooler in front of the database gives each statement another
// connection, so that there are no transactions.
var errPooling = fmt.Errorf("%w: the connection pooler pools statements, so the database has no transactions for this node;"+
	" set the pooler to session or transaction pooling (pgbouncer: pool_mode = transaction)", leaf.ErrConflict)

// grant says what an administrator of the database runs to give the right that err
// misses.
func (s *Store) grant(ctx context.Context, err error) string {
	rights := s.dialect.grant(s.target, err)
	if rights == "" {
		return "run it as the owner of the tables"
	}
	var account string
	if _, err := queryRow(ctx, s.read, s.dialect.account, nil, []any{&account}); err != nil {
		return "give the user the right"
	}
	return "an administrator of the database runs: GRANT " + rights + " TO " + account
}

// tableRights are what a node needs, and schemaRights what leaf schema apply needs.
const (
	tableRights  = "SELECT, INSERT, UPDATE, DELETE"
	schemaRights = tableRights + ", CREATE, ALTER"
)

// mysqlAccount is the account of the session as GRANT takes it. The name may have an @,
// the host has none.
const mysqlAccount = "SELECT CONCAT(QUOTE(LEFT(CURRENT_USER(), CHAR_LENGTH(CURRENT_USER()) - CHAR_LENGTH(SUBSTRING_INDEX(CURRENT_USER(), '@', -1)) - 1))," +
	" '@', QUOTE(SUBSTRING_INDEX(CURRENT_USER(), '@', -1)))"

// mysqlGrant reads from the error which command was denied.
func mysqlGrant(t target, err error) string {
	var e *mysql.MySQLError
	if !errors.As(err, &e) {
		return ""
	}
	rights := tableRights
	if strings.HasPrefix(e.Message, "CREATE ") || strings.HasPrefix(e.Message, "ALTER ") {
		rights = schemaRights
	}
	return rights + " ON `" + strings.ReplaceAll(t.database, "`", "``") + "`.*"
}

// postgresGrant reads from the error what was denied. Only the owner of a table can
// alter it, and no GRANT makes one.
func postgresGrant(t target, err error) string {
	var e *pgconn.PgError
	if !errors.As(err, &e) || strings.Contains(e.Message, "owner") {
		return ""
	}
	schema, _, _ := strings.Cut(t.params.Get("search_path"), ",")
	if schema == "" {
		schema = "public"
	}
	schema = `"` + strings.ReplaceAll(schema, `"`, `""`) + `"`
	if strings.Contains(e.Message, "schema") {
		return "USAGE, CREATE ON SCHEMA " + schema
	}
	return tableRights + " ON ALL TABLES IN SCHEMA " + schema
}
