package sqldb

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/leaf-idgen/leaf/segment"
)

// ErrFileLost says that a statement was carried out on a file that has lost its name, so that
// no process which opens the path later sees what it did.
var ErrFileLost = errors.New("the database file was deleted or replaced")

// sqliteFile opens connections to an existing file and ties each to the files that the
// path named then. It reports a missing file as what it is: only createFile makes
// one, so that nothing but Bind, Prepare and ApplySchema leaves an empty database
// behind where a path was mistyped.
type sqliteFile struct {
	driver.Connector

	of *sqliteWatch
}

// Connect implements driver.Connector.
func (f sqliteFile) Connect(ctx context.Context) (driver.Conn, error) {
	path := f.of.path
	info, err := os.Stat(path)
	if err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("%w: no file %s; run: leaf schema apply --store %q", segment.ErrSchema, path, "sqlite:"+path)
		}
		return nil, err
	}
	conn, err := f.Connector.Connect(ctx)
	if err != nil {
		return nil, err
	}
	base, ok := conn.(sqliteBase)
	if !ok {
		return nil, errors.Join(fmt.Errorf("the driver's %T is not what database/sql needs", conn), conn.Close())
	}
	// Reading opens the -wal and the -shm, and from then on nothing exchanges them.
	if err := readOnce(ctx, base); err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	c := &sqliteConn{sqliteBase: base, of: f.of, info: [...]fs.FileInfo{info, nil, nil}}
	f.of.add(c)
	if err := c.named(); err != nil {
		return nil, errors.Join(err, c.Close())
	}
	return c, nil
}

func readOnce(ctx context.Context, conn driver.QueryerContext) error {
	rows, err := conn.QueryContext(ctx, "SELECT 1 FROM sqlite_schema LIMIT 1", nil)
	if err != nil {
		return err
	}
	if err := rows.Next(make([]driver.Value, 1)); err != nil && !errors.Is(err, io.EOF) {
		return errors.Join(err, rows.Close())
	}
	return rows.Close()
}

// sqliteBase is what a connection of the driver can do.
type sqliteBase interface {
	driver.Conn
	driver.ConnBeginTx
	driver.ConnPrepareContext
	driver.ExecerContext
	driver.QueryerContext
	driver.Pinger
	driver.SessionResetter
	driver.Validator
}

// sqliteEnds are what the names of a database's files end in. The other two hold what is
// not in the first yet, and what says so to other processes.
var sqliteEnds = [...]string{"", "-wal", "-shm"}

// sqliteConn is a connection to the files of one database, whatever their paths name
// later. SQLite itself goes on with files that were deleted or replaced, for as long as
// it has them open: their owner would renew T and reserve ranges there, while others
// begin in the new ones.
//
// The paths are compared before a pooled connection is used again, and after everything
// that may write, COMMIT included. A replacement after that comparison is like the
// loss of a database whose commit was acknowledged. The open files keep their identity
// from being given to other ones.
type sqliteConn struct {
	sqliteBase

	of   *sqliteWatch
	info [len(sqliteEnds)]fs.FileInfo // under of.mu; nil: not seen yet
}

// Close implements driver.Conn.
func (c *sqliteConn) Close() error {
	c.of.remove(c)
	return c.sqliteBase.Close()
}

// named returns ErrFileLost unless the paths still name the files of the connection.
func (c *sqliteConn) named() error {
	for i, end := range sqliteEnds {
		path := c.of.path + end
		now, err := os.Stat(path)
		own := c.of.first(c, i, now)
		switch {
		case own == nil: // SQLite has not made it yet
		case errors.Is(err, fs.ErrNotExist), err == nil && !os.SameFile(now, own):
			return c.of.lose(fmt.Errorf("%w: %s", ErrFileLost, path))
		case err != nil:
			return fmt.Errorf("look whether the database file is still the same: %w", err)
		}
	}
	return nil
}

// ResetSession implements driver.SessionResetter: the pool drops the connection and
// opens the file that the path names now.
func (c *sqliteConn) ResetSession(ctx context.Context) error {
	if c.named() != nil {
		return driver.ErrBadConn
	}
	return c.sqliteBase.ResetSession(ctx)
}

// ExecContext implements driver.ExecerContext.
func (c *sqliteConn) ExecContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Result, error) {
	result, err := c.sqliteBase.ExecContext(ctx, query, args)
	if err != nil {
		return nil, err
	}
	if err := c.named(); err != nil {
		return nil, err
	}
	return result, nil
}

// createFile makes an empty database that only its owner can read, durably, and
// leaves an existing one alone. made reports which of the two happened.
func createFile(path string) (made bool, err error) {
	if err := checkLeftovers(path); err != nil {
		return false, err
	}
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("create database: %w", err)
	}
	if err := errors.Join(f.Sync(), f.Close()); err != nil {
		return false, fmt.Errorf("create database %s: %w", path, err)
	}
	dir, err := os.Open(filepath.Dir(path))
	if err != nil {
		return false, fmt.Errorf("create database %s: %w", path, err)
	}
	if err := errors.Join(dir.Sync(), dir.Close()); err != nil {
		return false, fmt.Errorf("create database %s: sync its folder: %w", path, err)
	}
	return true, nil
}

// checkLeftovers refuses to make a database beside the -wal or -shm of one that was
// deleted. A process that still has it open uses them, and SQLite would share them by
// name. They are looked for first: a database is there before its -wal is.
func checkLeftovers(path string) error {
	for _, end := range []string{"-wal", "-shm"} {
		if _, err := os.Lstat(path + end); err != nil {
			continue
		}
		if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("create database %s: it was deleted and its %s%s was not: stop every process that may still use it and delete that file, too", path, path, end)
		}
	}
	return nil
}
