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

	"github.com/leaf-idgen/leaf/internal/ownership"
	"github.com/leaf-idgen/leaf/segment"
)

// ErrFileLost says that a statement was carried out on a file that has lost its name, so that
// no process which opens the path later sees what it did.
var ErrFileLost = errors.New("the database file was deleted or replaced")

// sqliteFile opens connections to an existing file and ties each to the files that the
// path named then. It reports a missing file as what it is: only createFile makes
// one, so that nothing but Bind, Prepare and ApplySchema leaves an empty database
// behind where a path was mistyped.
//
// It does not open a file again whose -wal or -shm was lost: SQLite would make a new one, other
// processes would go on with the old one, and the pages of the two would damage the database.
type sqliteFile struct {
	driver.Connector

	of *sqliteWatch
}

// Connect implements driver.Connector.
func (f sqliteFile) Connect(ctx context.Context) (driver.Conn, error) {
	path := f.of.path
	_ = f.of.check() // a loss that no call has noticed yet
	info, err := os.Lstat(path)
	if err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("%w: no file %s; run: leaf schema apply --store %q", segment.ErrSchema, path, "sqlite:"+path)
		}
		return nil, err
	}
	if err := f.of.torn(info); err != nil {
		return nil, err
	}
	if err := oneName(path, info); err != nil {
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
	c := &sqliteConn{sqliteBase: base, of: f.of, info: [...]fs.FileInfo{info, nil, nil}}
	if err := c.open(ctx); err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	f.of.add(c)
	if err := c.named(); err != nil {
		return nil, errors.Join(err, c.Close())
	}
	return c, nil
}

// open reads, which opens the -wal and the -shm. From then on, until the connection is
// closed, SQLite of any process neither deletes nor exchanges them. A connection to a file
// that is not in WAL mode yet has none, and those of others come and go beside it.
func (c *sqliteConn) open(ctx context.Context) error {
	if _, err := readText(ctx, c.sqliteBase, "SELECT name FROM sqlite_schema LIMIT 1"); err != nil {
		return err
	}
	mode, err := readText(ctx, c.sqliteBase, "PRAGMA journal_mode")
	if err != nil || mode != "wal" {
		return err
	}
	for i := 1; i < len(sqliteEnds); i++ {
		path := c.of.path + sqliteEnds[i]
		if c.info[i], err = os.Stat(path); errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("%w: %s", ErrFileLost, path)
		} else if err != nil {
			return err
		}
	}
	return nil
}

// MissingFile returns the path of an embedded database whose file is not there, or empty, "" otherwise.
func (s *Store) MissingFile() string {
	if !s.dialect.embedded {
		return ""
	}
	info, err := os.Stat(s.target.path)
	if errors.Is(err, fs.ErrNotExist) || err == nil && info.Size() == 0 {
		return s.target.path
	}
	return ""
}

// readText returns the text of the first row, "" if there is none.
func readText(ctx context.Context, conn driver.QueryerContext, query string) (string, error) {
	rows, err := conn.QueryContext(ctx, query, nil)
	if err != nil {
		return "", err
	}
	value := make([]driver.Value, 1)
	if err = rows.Next(value); errors.Is(err, io.EOF) {
		err = nil
	}
	text, _ := value[0].(string)
	return text, errors.Join(err, rows.Close())
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
	info [len(sqliteEnds)]fs.FileInfo // what it has open; nil: none. It does not change
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
		own := c.info[i]
		switch {
		case own == nil || !c.of.has(c): // of a connection that was closed meanwhile it is not missed
		case errors.Is(err, fs.ErrNotExist), err == nil && !os.SameFile(now, own):
			return c.of.lose(fmt.Errorf("%w: %s", ErrFileLost, path), c.info[0], i > 0)
		case err != nil:
			return fmt.Errorf("look whether the database file is still the same: %w", err)
		}
	}
	return nil
}

// ResetSession implements driver.SessionResetter: the pool drops the connection.
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
	// SQLite gives the -wal and the -shm to the owner of the database.
	if folder, err := os.Stat(filepath.Dir(path)); err == nil {
		ownership.Inherit(f, folder)
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
