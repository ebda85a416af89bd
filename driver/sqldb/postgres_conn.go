package sqldb

import (
	"cmp"
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgtype"
)

// connectPostgres makes a connection for database/sql from pgconn, the protocol
// layer of pgx. A statement is one round trip from the first time on (parse, bind,
// execute and sync are sent together) and leaves nothing on the server, so that a
// connection pooler in between cannot mix anything up. pgx's own adapter would add a
// pool that we do not use, and a round trip after each pause. config becomes its own.
func connectPostgres(ctx context.Context, config *pgconn.Config) (driver.Conn, error) {
	p := new(pgConn)
	config.OnNotice = func(_ *pgconn.PgConn, n *pgconn.Notice) { p.notice(n) }
	conn, err := pgconn.ConnectConfig(ctx, config)
	if words := serverWords(err); len(words) > 0 {
		return nil, &refusedError{strings.Join(words, "; "), err}
	}
	if err != nil {
		return nil, &refusedError{attempts(err), err}
	}
	p.conn, p.used = conn, time.Now()
	if path := config.RuntimeParams["search_path"]; path != "" {
		if err := p.checkPath(ctx, path); err != nil {
			return nil, errors.Join(err, p.Close())
		}
	}
	return p, nil
}

// refusedError is a failed attempt to connect. The text is what the server said, if it said
// something: pgconn tells of each of its attempts, with TLS and without it, and the first
// one may have failed for a reason that does not matter. Else it is what the attempts say.
type refusedError struct {
	text string
	error
}

// Error implements error.
func (e *refusedError) Error() string { return e.text }

// Unwrap returns all that pgconn says.
func (e *refusedError) Unwrap() error { return e.error }

// serverWords returns what the server said in the attempts that failed, each text once.
func serverWords(err error) (words []string) {
	switch e := err.(type) { //nolint:errorlint // each layer is looked at
	case nil:
	case *pgconn.PgError:
		words = []string{e.Error()}
	case interface{ Unwrap() []error }:
		for _, one := range e.Unwrap() {
			words = append(words, serverWords(one)...)
		}
	case interface{ Unwrap() error }:
		words = serverWords(e.Unwrap())
	}
	slices.Sort(words)
	return slices.Compact(words)
}

// attempts returns what the attempts to connect say, each text once, in one line.
func attempts(err error) string {
	if failed, ok := errors.AsType[*pgconn.ConnectError](err); ok {
		err = failed.Unwrap() // it has a line for each attempt
	}
	var all []string
	for text := range strings.Lines(err.Error()) {
		if text = strings.TrimSpace(text); !slices.Contains(all, text) {
			all = append(all, text)
		}
	}
	return strings.Join(all, "; ")
}

// pgConn implements driver.Conn as far as the store needs it: no prepared
// statements, and transactions by statements.
type pgConn struct {
	conn    *pgconn.PgConn
	used    time.Time
	warning *pgconn.Notice // the last one of the statement under way
}

// errWarning: the server has warned between a statement that commits and its end. A
// server whose wait for its synchronous standby is cancelled says so: the commit is on
// no other server, and a failover loses it.
var errWarning = errors.New("the server warned at the commit, so the outcome is unknown")

// notice is called while a statement is under way, by the goroutine that reads.
func (c *pgConn) notice(n *pgconn.Notice) {
	if n.SeverityUnlocalized == "WARNING" || n.SeverityUnlocalized == "" && n.Severity == "WARNING" {
		c.warning = n
	}
}

// committed returns errWarning if the statement with this tag ended a transaction that
// may have written, and the server warned meanwhile. Inside of a transaction and beside
// a read a warning says nothing about what is kept.
func (c *pgConn) committed(tag pgconn.CommandTag) error {
	if c.warning == nil || c.conn.TxStatus() != 'I' || tag.Select() {
		return nil
	}
	return fmt.Errorf("%w: %s %s (SQLSTATE %s)", errWarning, c.warning.Message, c.warning.Detail, c.warning.Code)
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
	if err == nil {
		err = c.committed(tag)
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

// pgThen stands between two statements that go in one message, and so are one transaction, which
// the server commits behind the second one. The second one has the first parameter only.
const pgThen = ";\n"

// QueryContext implements driver.QueryerContext. A query with pgThen has two answers.
func (c *pgConn) QueryContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Rows, error) {
	if first, second, two := strings.Cut(query, pgThen); two {
		return c.both(ctx, first, second, args)
	}
	reader := c.start(ctx, query, args)
	fields := reader.FieldDescriptions()
	if fields == nil {
		if _, err := reader.Close(); err != nil {
			return nil, c.failed(err)
		}
	}
	return &pgRows{conn: c, reader: reader, fields: fields}, nil
}

// text sends statements as they are. An error of any of them is its error, and those
// that follow are not carried out.
func (c *pgConn) text(ctx context.Context, statements string) (last pgconn.CommandTag, err error) {
	c.used, c.warning = time.Now(), nil
	results, err := c.conn.Exec(ctx, statements).ReadAll()
	if err == nil && len(results) > 0 {
		last = results[len(results)-1].CommandTag
	}
	return last, err
}

func (c *pgConn) start(ctx context.Context, query string, args []driver.NamedValue) *pgconn.ResultReader {
	c.used, c.warning = time.Now(), nil
	values, types := parameters(args)
	return c.conn.ExecParams(ctx, query, values, types, nil, nil)
}

func (c *pgConn) both(ctx context.Context, first, second string, args []driver.NamedValue) (driver.Rows, error) {
	c.used, c.warning = time.Now(), nil
	values, types := parameters(args)
	message := c.conn.StartPipeline(ctx)
	message.SendQueryParams(first, values, types, nil, nil)
	message.SendQueryParams(second, values[:1], types[:1], nil, nil)
	err := message.Sync()
	var reader *pgconn.ResultReader
	if err == nil {
		reader, err = nextReader(message)
	}
	if err != nil {
		_ = message.Close() // the first error says more
		return nil, c.failed(err)
	}
	return &pgRows{conn: c, reader: reader, fields: reader.FieldDescriptions(), message: message}, nil
}

// nextReader turns to the answer of the next statement of a message.
func nextReader(message *pgconn.Pipeline) (*pgconn.ResultReader, error) {
	answer, err := message.GetResults()
	if err != nil {
		return nil, err
	}
	reader, ok := answer.(*pgconn.ResultReader)
	if !ok {
		return nil, fmt.Errorf("%w: %T", errAnswer, answer)
	}
	return reader, nil
}

func parameters(args []driver.NamedValue) (values [][]byte, types []uint32) {
	values, types = make([][]byte, len(args)), make([]uint32, len(args))
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
	return values, types
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
	conn   *pgConn
	reader *pgconn.ResultReader
	fields []pgconn.FieldDescription

	message *pgconn.Pipeline  // of two statements; nil: of one
	second  bool              // reader is that of the second one
	first   pgconn.CommandTag // of the first one, once second is set
}

var _ driver.RowsNextResultSet = (*pgRows)(nil)

// Columns implements driver.Rows.
func (r *pgRows) Columns() []string {
	names := make([]string, len(r.fields))
	for i, f := range r.fields {
		names[i] = f.Name
	}
	return names
}

var pgTypes = pgtype.NewMap()

// ColumnTypeDatabaseTypeName implements driver.RowsColumnTypeDatabaseTypeName.
func (r *pgRows) ColumnTypeDatabaseTypeName(i int) string {
	oid := r.fields[i].DataTypeOID
	if known, ok := pgTypes.TypeForOID(oid); ok {
		return known.Name
	}
	return fmt.Sprintf("with OID %d", oid)
}

// Close implements driver.Rows. It reads to the end of the answer and returns an
// error that the server reported after the last row.
func (r *pgRows) Close() error {
	tag, err := r.reader.Close()
	if r.message != nil {
		err = cmp.Or(err, r.message.Close())
	}
	if r.second {
		tag = r.first
	}
	if err == nil {
		err = r.conn.committed(tag)
	}
	return err
}

// HasNextResultSet implements driver.RowsNextResultSet.
func (r *pgRows) HasNextResultSet() bool { return r.message != nil && !r.second }

// NextResultSet implements driver.RowsNextResultSet.
func (r *pgRows) NextResultSet() (err error) {
	if !r.HasNextResultSet() {
		return io.EOF
	}
	if r.first, err = r.reader.Close(); err != nil {
		return err
	}
	reader, err := nextReader(r.message)
	if err != nil {
		return err
	}
	r.reader, r.fields, r.second = reader, reader.FieldDescriptions(), true
	return nil
}

// Next implements driver.Rows.
func (r *pgRows) Next(dest []driver.Value) error {
	if !r.reader.NextRow() {
		if !r.HasNextResultSet() {
			return cmp.Or(r.Close(), io.EOF)
		}
		_, err := r.reader.Close()
		return cmp.Or(err, io.EOF)
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
