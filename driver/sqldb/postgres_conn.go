package sqldb

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgtype"
)

// pgConnector makes PostgreSQL connections for database/sql from pgconn, the
// protocol layer of pgx. A statement is one round trip from the first time on
// (parse, bind, execute and sync are sent together) and leaves nothing on the
// server, so that a connection pooler in between cannot mix anything up. pgx's own
// adapter would add a pool that we do not use, and a round trip after each pause.
type pgConnector struct{ config *pgconn.Config }

// Connect implements driver.Connector.
func (c pgConnector) Connect(ctx context.Context) (driver.Conn, error) {
	conn, err := pgconn.ConnectConfig(ctx, c.config)
	if err != nil {
		return nil, err
	}
	return &pgConn{conn: conn, used: time.Now()}, nil
}

// Driver implements driver.Connector.
func (c pgConnector) Driver() driver.Driver { return pgDriver{} }

type pgDriver struct{}

// Open implements driver.Driver. Connections come from the connector only.
func (pgDriver) Open(string) (driver.Conn, error) { return nil, errors.ErrUnsupported }

// pgConn implements driver.Conn as far as the store needs it: no prepared
// statements, and transactions by statements.
type pgConn struct {
	conn *pgconn.PgConn
	used time.Time
}

var (
	_ driver.QueryerContext  = (*pgConn)(nil)
	_ driver.ExecerContext   = (*pgConn)(nil)
	_ driver.Pinger          = (*pgConn)(nil)
	_ driver.SessionResetter = (*pgConn)(nil)
	_ driver.Validator       = (*pgConn)(nil)
)

// Prepare implements driver.Conn.
func (c *pgConn) Prepare(string) (driver.Stmt, error) { return nil, errors.ErrUnsupported }

// Begin implements driver.Conn.
func (c *pgConn) Begin() (driver.Tx, error) { return nil, errors.ErrUnsupported }

// Close implements driver.Conn. It sends a farewell and does not wait.
func (c *pgConn) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	return c.conn.Close(ctx)
}

// IsValid implements driver.Validator.
func (c *pgConn) IsValid() bool { return !c.conn.IsClosed() && c.conn.TxStatus() == 'I' }

// ResetSession implements driver.SessionResetter: it refuses a pooled connection
// that a statement would only fail on. After a pause it listens, for no longer than
// a millisecond, whether the server has said goodbye; that costs no round trip.
func (c *pgConn) ResetSession(context.Context) error {
	if c.IsValid() && time.Since(c.used) > time.Second {
		ctx, cancel := context.WithTimeout(context.Background(), time.Millisecond)
		defer cancel()
		if _, err := c.conn.ReceiveMessage(ctx); err != nil && !pgconn.Timeout(err) {
			return driver.ErrBadConn
		}
	}
	if !c.IsValid() {
		return driver.ErrBadConn
	}
	return nil
}

// Ping implements driver.Pinger.
func (c *pgConn) Ping(ctx context.Context) error {
	return c.failed(c.conn.Exec(ctx, "-- ping").Close())
}

// ExecContext implements driver.ExecerContext. It returns when the server is
// ready for the next statement, hence after an automatic commit. Without arguments
// query may be several statements, and the result is that of the last one.
func (c *pgConn) ExecContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Result, error) {
	var tag pgconn.CommandTag
	var err error
	if len(args) == 0 {
		tag, err = c.text(ctx, query)
	} else {
		tag, err = c.start(ctx, query, args).Close()
	}
	if err != nil {
		return nil, c.failed(err)
	}
	// A COMMIT of a transaction that already failed is not an error to the server.
	if query == "COMMIT" && tag.String() != "COMMIT" {
		return nil, fmt.Errorf("the server answered %q to COMMIT", tag.String())
	}
	return driver.RowsAffected(tag.RowsAffected()), nil
}

// QueryContext implements driver.QueryerContext.
func (c *pgConn) QueryContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Rows, error) {
	reader := c.start(ctx, query, args)
	fields := reader.FieldDescriptions()
	if fields == nil {
		if _, err := reader.Close(); err != nil {
			return nil, c.failed(err)
		}
	}
	return &pgRows{reader: reader, fields: fields}, nil
}

// text sends statements as they are. An error of any of them is its error, and those
// that follow are not carried out.
func (c *pgConn) text(ctx context.Context, statements string) (last pgconn.CommandTag, err error) {
	c.used = time.Now()
	results, err := c.conn.Exec(ctx, statements).ReadAll()
	if err == nil && len(results) > 0 {
		last = results[len(results)-1].CommandTag
	}
	return last, err
}

func (c *pgConn) start(ctx context.Context, query string, args []driver.NamedValue) *pgconn.ResultReader {
	c.used = time.Now()
	values := make([][]byte, len(args))
	types := make([]uint32, len(args))
	for i, arg := range args {
		switch v := arg.Value.(type) {
		case int64:
			values[i], types[i] = strconv.AppendInt(nil, v, 10), pgtype.Int8OID
		case bool:
			values[i], types[i] = strconv.AppendBool(nil, v), pgtype.BoolOID
		default:
			values[i], types[i] = fmt.Append([]byte{}, v), pgtype.TextOID // a nil slice would be NULL
		}
	}
	return c.conn.ExecParams(ctx, query, values, types, nil, nil)
}

// failed allows database/sql to use another connection where nothing was sent.
func (c *pgConn) failed(err error) error {
	if err != nil && pgconn.SafeToRetry(err) {
		return driver.ErrBadConn
	}
	return err
}

// pgRows streams a result in text format.
type pgRows struct {
	reader *pgconn.ResultReader
	fields []pgconn.FieldDescription
}

// Columns implements driver.Rows.
func (r *pgRows) Columns() []string {
	names := make([]string, len(r.fields))
	for i, f := range r.fields {
		names[i] = f.Name
	}
	return names
}

// Close implements driver.Rows. It reads to the end of the answer and returns an
// error that the server reported after the last row.
func (r *pgRows) Close() error {
	_, err := r.reader.Close()
	return err
}

// Next implements driver.Rows.
func (r *pgRows) Next(dest []driver.Value) error {
	if !r.reader.NextRow() {
		if err := r.Close(); err != nil {
			return err
		}
		return io.EOF
	}
	for i, text := range r.reader.Values() {
		switch {
		case text == nil:
			dest[i] = nil
		case r.fields[i].DataTypeOID == pgtype.BoolOID:
			dest[i] = len(text) == 1 && text[0] == 't'
		default:
			dest[i] = string(text) // database/sql converts numbers
		}
	}
	return nil
}
