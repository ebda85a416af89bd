package sqldb_test

import (
	"context"
	"database/sql/driver"
	"errors"
	"io"
	"sync/atomic"
)

// seam stands between sqldb and a database driver. trip is called around each call of
// the driver, before it and after it, and may panic. answer, unless nil, may replace
// what the driver answers to a query.
type seam struct {
	trip   func(call string, after bool)
	answer func(query string, rows driver.Rows) driver.Rows

	connections atomic.Int64
	oldest      atomic.Int64 // the lowest number of a connection that was used since this was set
}

func (s *seam) around(call string, f func()) {
	s.trip(call, false)
	f()
	s.trip(call, true)
}

// below is for sqldb.WithFaults.
func (s *seam) below(c driver.Connector) driver.Connector { return seamConnector{c, s} }

type seamConnector struct {
	driver.Connector
	seam *seam
}

func (c seamConnector) Connect(ctx context.Context) (_ driver.Conn, err error) {
	var conn driver.Conn
	c.seam.trip("Connect", false) // afterwards nobody would close the connection
	if conn, err = c.Connector.Connect(ctx); err != nil {
		return nil, err
	}
	return &seamConn{Conn: conn, seam: c.seam, number: c.seam.connections.Add(1)}, nil
}

// seamConn passes on whatever the three drivers can do.
type seamConn struct {
	driver.Conn
	seam   *seam
	number int64
}

// used notes which connection is used.
func (c *seamConn) used() {
	for {
		oldest := c.seam.oldest.Load()
		if oldest <= c.number || c.seam.oldest.CompareAndSwap(oldest, c.number) {
			return
		}
	}
}

func (c *seamConn) ExecContext(ctx context.Context, query string, args []driver.NamedValue) (result driver.Result, err error) {
	c.used()
	c.seam.around("Exec "+query, func() { result, err = c.Conn.(driver.ExecerContext).ExecContext(ctx, query, args) })
	return seamResult{result, c.seam}, err
}

type seamResult struct {
	driver.Result
	seam *seam
}

func (r seamResult) RowsAffected() (n int64, err error) {
	r.seam.trip("RowsAffected", false)
	return r.Result.RowsAffected()
}

func (c *seamConn) QueryContext(ctx context.Context, query string, args []driver.NamedValue) (rows driver.Rows, err error) {
	c.used()
	c.seam.around("Query "+query, func() { rows, err = c.Conn.(driver.QueryerContext).QueryContext(ctx, query, args) })
	if err != nil {
		return nil, err
	}
	if c.seam.answer != nil {
		rows = c.seam.answer(query, rows)
	}
	return &seamRows{Rows: rows, seam: c.seam}, nil
}

func (c *seamConn) Ping(ctx context.Context) (err error) {
	c.seam.around("Ping", func() { err = c.Conn.(driver.Pinger).Ping(ctx) })
	return err
}

func (c *seamConn) ResetSession(ctx context.Context) (err error) {
	c.seam.around("ResetSession", func() { err = c.Conn.(driver.SessionResetter).ResetSession(ctx) })
	return err
}

func (c *seamConn) IsValid() (valid bool) {
	c.seam.around("IsValid", func() { valid = c.Conn.(driver.Validator).IsValid() })
	return valid
}

func (c *seamConn) Close() error {
	defer c.seam.trip("Close", true)
	return c.Conn.Close()
}

func (c *seamConn) CheckNamedValue(v *driver.NamedValue) error {
	if checker, ok := c.Conn.(driver.NamedValueChecker); ok {
		return checker.CheckNamedValue(v)
	}
	return driver.ErrSkip
}

func (c *seamConn) BeginTx(ctx context.Context, o driver.TxOptions) (driver.Tx, error) {
	return c.Conn.(driver.ConnBeginTx).BeginTx(ctx, o)
}

func (c *seamConn) PrepareContext(ctx context.Context, query string) (driver.Stmt, error) {
	return c.Conn.(driver.ConnPrepareContext).PrepareContext(ctx, query)
}

type seamRows struct {
	driver.Rows
	seam *seam
}

func (r *seamRows) Columns() (names []string) {
	r.seam.around("Columns", func() { names = r.Rows.Columns() })
	return names
}

func (r *seamRows) Next(dest []driver.Value) (err error) {
	r.seam.around("Next", func() { err = r.Rows.Next(dest) })
	return err
}

func (r *seamRows) Close() (err error) {
	r.seam.around("Close rows", func() { err = r.Rows.Close() })
	return err
}

func (r *seamRows) HasNextResultSet() bool {
	next, ok := r.Rows.(driver.RowsNextResultSet)
	return ok && next.HasNextResultSet()
}

func (r *seamRows) NextResultSet() (err error) {
	next, ok := r.Rows.(driver.RowsNextResultSet)
	if !ok {
		return io.EOF
	}
	r.seam.around("NextResultSet", func() { err = next.NextResultSet() })
	return err
}

func (r *seamRows) ColumnTypeDatabaseTypeName(i int) string {
	if typed, ok := r.Rows.(driver.RowsColumnTypeDatabaseTypeName); ok {
		return typed.ColumnTypeDatabaseTypeName(i)
	}
	return ""
}

// answer is the whole answer to a query, in memory.
type answer struct {
	columns [][]string
	sets    [][][]driver.Value
	end     error // instead of the end of the last set
}

// readAnswer reads an answer to its end.
func readAnswer(rows driver.Rows) *answer {
	a := new(answer)
	for {
		columns := rows.Columns()
		var set [][]driver.Value
		for {
			row := make([]driver.Value, len(columns))
			err := rows.Next(row)
			if err != nil {
				if !errors.Is(err, io.EOF) {
					a.end = err
				}
				break
			}
			for i, v := range row {
				if b, ok := v.([]byte); ok {
					row[i] = string(b)
				}
			}
			set = append(set, row)
		}
		a.columns, a.sets = append(a.columns, columns), append(a.sets, set)
		next, ok := rows.(driver.RowsNextResultSet)
		if a.end != nil || !ok || !next.HasNextResultSet() {
			break
		}
		if err := next.NextResultSet(); err != nil {
			if !errors.Is(err, io.EOF) {
				a.end = err
			}
			break
		}
	}
	if err := rows.Close(); err != nil && a.end == nil {
		a.end = err
	}
	return a
}

func (a *answer) Columns() []string { return a.columns[0] }
func (a *answer) Close() error      { return nil }

func (a *answer) Next(dest []driver.Value) error {
	if len(a.sets[0]) == 0 {
		if len(a.sets) == 1 && a.end != nil {
			return a.end
		}
		return io.EOF
	}
	copy(dest, a.sets[0][0])
	a.sets[0] = a.sets[0][1:]
	return nil
}

func (a *answer) HasNextResultSet() bool { return len(a.sets) > 1 }

func (a *answer) NextResultSet() error {
	if len(a.sets) < 2 {
		return io.EOF
	}
	a.columns, a.sets = a.columns[1:], a.sets[1:]
	return nil
}
