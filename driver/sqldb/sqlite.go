package sqldb

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"path/filepath"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/segment"
)

var sqliteDialect = dialect{
	name:     "sqlite",
	schemes:  []string{"sqlite"},
	embedded: true,
	open:     openSQLite,
	quote:    `"`,
	begin:    func(idle) string { return "BEGIN IMMEDIATE" }, // takes the write lock now, not at the first write, where it could not wait
	exact:    "biz_tag = ? COLLATE BINARY",
	bytes:    "biz_tag COLLATE BINARY",
	after:    "biz_tag COLLATE BINARY > ?",
	epoch:    "CAST(strftime('%s', update_time) AS INTEGER)",
	now:      "CAST((julianday('now') - 2440587.5) * 86400000 AS INTEGER)",
	upsert:   " ON CONFLICT (%s) DO UPDATE SET ",
	proposed: "excluded.%s",
	greatest: "MAX",
	check:    checkSQLite,
	kindOf:   sqliteKind,
}

// sqliteReaders bounds the connections that only read. Readers and the writer do
// not block one another in WAL mode.
const sqliteReaders = 4

// openSQLite makes a pool of one writer, because SQLite's own waiting starves
// some of several writers for a second, and one of readers. The writer's waiting
// is short: begin repeats it for as long as its context lasts.
func openSQLite(t target, _ *login, cfg Config) (pools, error) {
	write, err := sqlite.NewConnector(sqliteDSN(t.path, url.Values{
		"_busy_timeout": {"5"}, "_journal_mode": {"WAL"}, "_synchronous": {"FULL"},
		// Each commit is copied into the main file at once: a process that starts after the
		// -wal was deleted finds there what this one was given.
		"_pragma": {"fullfsync(1)", "checkpoint_fullfsync(1)", "wal_autocheckpoint(1)"},
	}))
	if err != nil {
		return pools{}, leaf.BadField("store path", t.path, err.Error())
	}
	read, err := sqlite.NewConnector(sqliteDSN(t.path, url.Values{"_busy_timeout": {"1000"}, "_query_only": {"true"}}))
	if err != nil {
		return pools{}, leaf.BadField("store path", t.path, err.Error())
	}
	tracked := track(cfg.Logger)
	file := &sqliteWatch{path: t.path, conns: map[*sqliteConn]bool{}}
	p := pools{
		write: sql.OpenDB(tracked(sqliteFile{cfg.below(write), file})),
		read:  sql.OpenDB(tracked(sqliteFile{cfg.below(read), file})),
		file:  file,
	}
	p.write.SetMaxOpenConns(1)
	p.read.SetMaxOpenConns(sqliteReaders)
	p.read.SetMaxIdleConns(sqliteReaders)
	return p, nil
}

// sqliteDSN returns a URI that opens an existing file; every byte of path counts.
func sqliteDSN(path string, params url.Values) string {
	params.Set("mode", "rw")
	return (&url.URL{Scheme: "file", Path: filepath.ToSlash(path), RawQuery: params.Encode()}).String()
}

// checkSQLite verifies on the writer's connection that a commit is durable.
func checkSQLite(ctx context.Context, s *Store, _ ...string) error {
	return s.transact(ctx, func(conn *sql.Conn) error {
		var mode string
		if _, err := queryRow(ctx, conn, "PRAGMA journal_mode", nil, []any{&mode}); err != nil {
			return fmt.Errorf("read journal_mode: %w", err)
		}
		const full = 2
		var synchronous int
		if _, err := queryRow(ctx, conn, "PRAGMA synchronous", nil, []any{&synchronous}); err != nil {
			return fmt.Errorf("read synchronous: %w", err)
		}
		if mode != "wal" || synchronous != full {
			return fmt.Errorf("%w: %s has journal_mode=%s synchronous=%d and refuses wal and %d; is it on a network filesystem?",
				segment.ErrSchema, s.target.path, mode, synchronous, full)
		}
		return nil
	})
}

func sqliteKind(err error) kind {
	if errors.Is(err, segment.ErrSchema) {
		return kindNoTable
	}
	var e *sqlite.Error
	if !errors.As(err, &e) {
		return kindOther
	}
	switch e.Code() & 0xff {
	case sqlite3.SQLITE_ERROR, sqlite3.SQLITE_SCHEMA:
		// "Generic error": SQLite has no code of its own for a missing table or
		// column, and nothing else is ever wrong with the text of our statements. The
		// other code is the same while another process changes the schema.
		return kindNoTable
	case sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED:
		return kindBusy
	case sqlite3.SQLITE_READONLY:
		return kindReadOnly
	case sqlite3.SQLITE_CONSTRAINT:
		return sqliteConstraint(e.Code())
	}
	return kindOther
}

func sqliteConstraint(code int) kind {
	switch code {
	case sqlite3.SQLITE_CONSTRAINT_PRIMARYKEY, sqlite3.SQLITE_CONSTRAINT_UNIQUE:
		return kindDuplicate
	case sqlite3.SQLITE_CONSTRAINT_DATATYPE:
		return kindTooBig
	}
	return kindOther
}
