package server

import (
	"context"
	"crypto/rand"
	"database/sql"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/go-sql-driver/mysql"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
)

// Database is the address of one database on a running server. It is a value
// and safe for concurrent use.
type Database struct {
	url *url.URL
}

// ParseDatabase reads mysql://user:password@host:port/name or postgres://… .
func ParseDatabase(text string) (Database, error) {
	u, err := url.Parse(text)
	if err != nil {
		return Database{}, fmt.Errorf("database URL is malformed: %w", err.(*url.Error).Err) //nolint:errorlint // url.Parse returns nothing else, and its text would show the password
	}
	switch u.Scheme {
	case "mysql", "postgres", "postgresql":
	default:
		return Database{}, fmt.Errorf("database URL scheme %q: must be mysql or postgres", u.Scheme)
	}
	if u.Port() == "" {
		return Database{}, fmt.Errorf("database URL host %q: a port is needed", u.Host)
	}
	return Database{u}, nil
}

// URL returns the address as mysql://… or postgres://…, with the password.
func (d Database) URL() string { return d.url.String() }

// Redacted returns the URL without the password, for messages.
func (d Database) Redacted() string { return d.url.Redacted() }

// Addr returns the host and port of the server, e.g. as a proxy's target.
func (d Database) Addr() string { return d.url.Host }

// Name returns the name of the database.
func (d Database) Name() string { return strings.TrimPrefix(d.url.Path, "/") }

// Via returns the same database at another host and port, e.g. a proxy's.
func (d Database) Via(addr string) Database {
	u := *d.url
	u.Host = addr
	return Database{&u}
}

// Named returns the database called name on the same server; it need not exist.
func (d Database) Named(name string) Database {
	u := *d.url
	u.Path = "/" + name
	return Database{&u}
}

// DSN returns the address in the form of the database/sql driver "mysql" or
// "pgx".
func (d Database) DSN() (string, error) {
	if d.url.Scheme != "mysql" {
		return d.URL(), nil
	}
	cfg, err := d.mysqlConfig()
	if err != nil {
		return "", err
	}
	return cfg.FormatDSN(), nil
}

// Open returns a pool of connections that is closed at the end of the test.
func (d Database) Open(t testing.TB) *sql.DB {
	t.Helper()
	pool, err := d.pool()
	if err != nil {
		t.Fatalf("open %s: %v", d.Redacted(), err)
	}
	t.Cleanup(func() { pool.Close() })
	return pool
}

// Version asks the server for its version, e.g. "10.11.19-MariaDB-0+deb12u1" or
// "15.18 (Debian 15.18-0+deb12u1)".
func (d Database) Version(ctx context.Context) (string, error) {
	query := "SELECT VERSION()"
	if d.url.Scheme != "mysql" {
		query = "SHOW server_version"
	}
	var version string
	if err := d.scan(ctx, query, &version); err != nil {
		return "", fmt.Errorf("ask %s for its version: %w", d.Redacted(), err)
	}
	return version, nil
}

// fresh creates an empty database on d's server. drop removes it and ends the
// sessions that are still in it.
func (d Database) fresh(ctx context.Context) (created Database, drop func(context.Context) error, err error) {
	created = d.Named("leaf_test_" + strings.ToLower(rand.Text()))
	create := "CREATE DATABASE " + created.Name()
	if d.url.Scheme != "mysql" {
		create += " TEMPLATE template0" // nobody can be connected to it, which would forbid the copy
	}
	if err := d.exec(ctx, create); err != nil {
		return Database{}, nil, err
	}
	return created, func(ctx context.Context) error {
		if d.url.Scheme != "mysql" {
			return d.exec(ctx, "DROP DATABASE "+created.Name()+" WITH (FORCE)")
		}
		return d.dropMySQL(ctx, created.Name())
	}, nil
}

// dropMySQL ends the sessions in the database first: DROP DATABASE would wait
// for their transactions.
func (d Database) dropMySQL(ctx context.Context, name string) error {
	pool, err := d.pool()
	if err != nil {
		return err
	}
	defer pool.Close()
	ids, err := sessions(ctx, pool, name)
	if err != nil {
		return fmt.Errorf("list the sessions in %s: %w", name, err)
	}
	for _, id := range ids {
		_, _ = pool.ExecContext(ctx, "KILL "+id) // may have ended meanwhile
	}
	return d.exec(ctx, "DROP DATABASE "+name)
}

// sessions returns the IDs of those that use a database. It does not read
// information_schema.processlist, which MySQL 9 refuses (error 3854) while any session of
// the server runs a statement with a character beyond utf8mb3.
func sessions(ctx context.Context, pool *sql.DB, name string) (ids []string, err error) {
	all, err := byColumn(ctx, pool, "SHOW PROCESSLIST")
	for _, session := range all {
		id, hasID := session["Id"]
		db, hasDB := session["db"]
		if !hasID || !hasDB {
			return nil, fmt.Errorf("SHOW PROCESSLIST has the columns %q, want Id and db", slices.Sorted(maps.Keys(session)))
		}
		if db == name {
			ids = append(ids, id)
		}
	}
	return ids, err
}

// byColumn returns the rows of a query, each by the names of its columns; NULL is "".
func byColumn(ctx context.Context, pool *sql.DB, query string) (all []map[string]string, err error) {
	rows, err := pool.QueryContext(ctx, query)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	columns, err := rows.Columns()
	if err != nil {
		return nil, err
	}
	values, into := make([]sql.NullString, len(columns)), make([]any, len(columns))
	for i := range values {
		into[i] = &values[i]
	}
	for rows.Next() {
		if err := rows.Scan(into...); err != nil {
			return nil, err
		}
		row := map[string]string{}
		for i, name := range columns {
			row[name] = values[i].String
		}
		all = append(all, row)
	}
	return all, rows.Err()
}

func (d Database) exec(ctx context.Context, statement string) error {
	pool, err := d.pool()
	if err != nil {
		return err
	}
	defer pool.Close()
	if _, err := pool.ExecContext(ctx, statement); err != nil {
		return fmt.Errorf("%s: %w", statement, err)
	}
	return nil
}

// scan reads the one row that a query returns.
func (d Database) scan(ctx context.Context, query string, into ...any) error {
	pool, err := d.pool()
	if err != nil {
		return err
	}
	defer pool.Close()
	if err := pool.QueryRowContext(ctx, query).Scan(into...); err != nil {
		return fmt.Errorf("%s: %w", query, err)
	}
	return nil
}

// status returns the variables of a MariaDB server whose names match a pattern.
func (d Database) status(ctx context.Context, like string) (map[string]string, error) {
	pool, err := d.pool()
	if err != nil {
		return nil, err
	}
	defer pool.Close()
	rows, err := pool.QueryContext(ctx, "SHOW GLOBAL STATUS LIKE '"+like+"'")
	if err != nil {
		return nil, fmt.Errorf("ask %s for its status: %w", d.Redacted(), err)
	}
	defer rows.Close()
	status := map[string]string{}
	for rows.Next() {
		var name, value string
		if err := rows.Scan(&name, &value); err != nil {
			return nil, err
		}
		status[name] = value
	}
	return status, rows.Err()
}

func (d Database) pool() (*sql.DB, error) {
	if d.url.Scheme == "mysql" {
		cfg, err := d.mysqlConfig()
		if err != nil {
			return nil, err
		}
		connector, err := mysql.NewConnector(cfg)
		if err != nil {
			return nil, err
		}
		return sql.OpenDB(connector), nil
	}
	cfg, err := pgx.ParseConfig(d.URL())
	if err != nil {
		return nil, err
	}
	return stdlib.OpenDB(*cfg), nil
}

func (d Database) mysqlConfig() (*mysql.Config, error) {
	cfg, err := mysql.ParseDSN("tcp(" + d.url.Host + ")/" + d.Name() + "?" + d.url.RawQuery)
	if err != nil {
		return nil, err
	}
	cfg.User = d.url.User.Username()
	cfg.Passwd, _ = d.url.User.Password()
	cfg.Logger = &mysql.NopLogger{} // it reports each refused connection of a server that is starting
	return cfg, nil
}
