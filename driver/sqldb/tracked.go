package sqldb

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"runtime/debug"
	"strings"
	"sync/atomic"
)

// errPanic: the database driver panicked. The outcome of the statement is unknown.
var errPanic = errors.New("the database driver panicked")

// tracked makes connections that know whether they may be used again. A connection
// goes back into the pool only after an acknowledged end: of the statement, and of the
// transaction where one was begun. Everything else is closed, by which the server takes
// an open transaction back.
//
// A panic of the driver becomes errPanic before database/sql sees it: database/sql
// would lose the connection, or wait for itself when the connection is closed. After a
// panic no connection that was made before is used again, because what the driver has
// left behind is not known.
type tracked struct {
	driver.Connector
	panics *atomic.Int64 // so far, of all connections to this database
	logger *slog.Logger
}

// track returns what makes tracked connections to one database.
func track(logger *slog.Logger) func(driver.Connector) driver.Connector {
	panics := new(atomic.Int64)
	return func(c driver.Connector) driver.Connector {
		return tracked{Connector: c, panics: panics, logger: logger}
	}
}

// Connect implements driver.Connector.
func (t tracked) Connect(ctx context.Context) (_ driver.Conn, err error) {
	defer t.recovered(&err)
	seen := t.panics.Load()
	conn, err := t.Connector.Connect(ctx)
	if err != nil {
		return nil, err
	}
	base, ok := conn.(trackedBase)
	if !ok {
		return nil, errors.Join(fmt.Errorf("the driver's %T is not what database/sql needs", conn), conn.Close())
	}
	return &trackedConn{trackedBase: base, pool: t, seen: seen}, nil
}

// recovered turns a panic into errPanic. It is meant to be deferred.
func (t tracked) recovered(err *error) {
	p := recover()
	if p == nil {
		return
	}
	t.panics.Add(1)
	*err = fmt.Errorf("%w: %v", errPanic, p)
	t.logger.Error("the database driver panicked; the call gives no ID, and the node closes all its connections to this database and opens new ones",
		"panic", fmt.Sprint(p), "stack", string(debug.Stack()))
}

// trackedBase is what a connection of the driver can do.
type trackedBase interface {
	driver.Conn
	driver.ExecerContext
	driver.QueryerContext
	driver.Pinger
	driver.SessionResetter
	driver.Validator
}

// trackedConn is one connection. database/sql calls it from one goroutine at a time.
type trackedConn struct {
	trackedBase
	pool tracked
	seen int64 // panics of the pool when it was made

	unread bool // the answer to a query has not been read to its end
	open   bool // a transaction was begun, and its end is not acknowledged
}

// Statements that begin and end a transaction: nothing else is ever sent that does.
func begins(query string) bool {
	return strings.HasPrefix(query, "START TRANSACTION") || strings.HasPrefix(query, "BEGIN")
}

func ends(query string) bool { return query == "COMMIT" || query == "ROLLBACK" }

// IsValid implements driver.Validator.
func (c *trackedConn) IsValid() (valid bool) {
	var err error
	defer func() { valid = valid && err == nil }()
	defer c.pool.recovered(&err)
	return !c.unread && !c.open && c.seen == c.pool.panics.Load() && c.trackedBase.IsValid()
}

// ResetSession implements driver.SessionResetter.
func (c *trackedConn) ResetSession(ctx context.Context) (err error) {
	defer c.pool.recovered(&err)
	if !c.IsValid() {
		return driver.ErrBadConn
	}
	return c.trackedBase.ResetSession(ctx)
}

// Ping implements driver.Pinger.
func (c *trackedConn) Ping(ctx context.Context) (err error) {
	defer c.pool.recovered(&err)
	return c.trackedBase.Ping(ctx)
}

// Close implements driver.Conn.
func (c *trackedConn) Close() (err error) {
	defer c.pool.recovered(&err)
	return c.trackedBase.Close()
}

// CheckNamedValue implements driver.NamedValueChecker.
func (c *trackedConn) CheckNamedValue(v *driver.NamedValue) (err error) {
	defer c.pool.recovered(&err)
	if checker, ok := c.trackedBase.(driver.NamedValueChecker); ok {
		return checker.CheckNamedValue(v)
	}
	return driver.ErrSkip
}

// ExecContext implements driver.ExecerContext.
func (c *trackedConn) ExecContext(ctx context.Context, query string, args []driver.NamedValue) (_ driver.Result, err error) {
	defer c.pool.recovered(&err)
	c.open = c.open || begins(query)
	result, err := c.trackedBase.ExecContext(ctx, query, args)
	switch {
	case err == nil && ends(query):
		c.open = false
	case err != nil && sqliteKind(err) == kindBusy: // no other driver has such an error
		c.open = c.open && !begins(query)
	}
	if err != nil {
		return nil, err
	}
	n, err := result.RowsAffected() // now, while a panic is caught
	return driver.RowsAffected(n), err
}

// QueryContext implements driver.QueryerContext.
func (c *trackedConn) QueryContext(ctx context.Context, query string, args []driver.NamedValue) (_ driver.Rows, err error) {
	defer c.pool.recovered(&err)
	c.unread = true
	c.open = c.open || begins(query)
	rows, err := c.trackedBase.QueryContext(ctx, query, args)
	if err != nil {
		c.unread = false // the driver and the server know whether it can be used
		return nil, err
	}
	return &trackedRows{Rows: rows, conn: c, whole: begins(query), more: strings.Count(query, "SELECT ?") - 1}, nil
}

// trackedRows is the answer to a query.
type trackedRows struct {
	driver.Rows
	conn *trackedConn

	// A query that begins a transaction is all of it, see mysqlPacket, and its last
	// SELECT comes after its COMMIT. Each SELECT that is answered begins with a parameter.
	whole bool
	more  int // SELECTs that have not been answered yet
}

// Next implements driver.Rows.
func (r *trackedRows) Next(dest []driver.Value) (err error) {
	defer r.conn.pool.recovered(&err)
	err = r.Rows.Next(dest)
	if r.whole && r.more == 0 && errors.Is(err, io.EOF) {
		r.conn.open = false
	}
	return err
}

// HasNextResultSet implements driver.RowsNextResultSet.
func (r *trackedRows) HasNextResultSet() (has bool) {
	var err error
	defer r.conn.pool.recovered(&err)
	next, ok := r.Rows.(driver.RowsNextResultSet)
	return ok && next.HasNextResultSet()
}

// NextResultSet implements driver.RowsNextResultSet.
func (r *trackedRows) NextResultSet() (err error) {
	defer r.conn.pool.recovered(&err)
	next, ok := r.Rows.(driver.RowsNextResultSet)
	if !ok {
		return io.EOF
	}
	if err = next.NextResultSet(); err == nil {
		r.more--
	}
	return err
}

// ColumnTypeDatabaseTypeName implements driver.RowsColumnTypeDatabaseTypeName.
func (r *trackedRows) ColumnTypeDatabaseTypeName(i int) (name string) {
	var err error
	defer r.conn.pool.recovered(&err)
	if typed, ok := r.Rows.(driver.RowsColumnTypeDatabaseTypeName); ok {
		return typed.ColumnTypeDatabaseTypeName(i)
	}
	return ""
}

// Columns implements driver.Rows. It has no error to return: after a panic it has no
// columns, so that nothing can be read.
func (r *trackedRows) Columns() (names []string) {
	var err error
	defer r.conn.pool.recovered(&err)
	return r.Rows.Columns()
}

// Close implements driver.Rows.
func (r *trackedRows) Close() (err error) {
	defer r.conn.pool.recovered(&err)
	err = r.Rows.Close()
	r.conn.unread = false
	return err
}
