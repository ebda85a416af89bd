package sqldb

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/leaf-idgen/leaf/segment"
)

// errTwoRows: the key of leaf_alloc is gone, so a tag means nothing any more.
var errTwoRows = fmt.Errorf("%w: leaf_alloc holds several rows for one tag; make biz_tag its primary key", segment.ErrSchema)

// transact runs f in a transaction that may write. It drives the transaction by
// statements on one connection, because sql.Tx neither bounds COMMIT by a context
// nor tells a lost reply from a refusal.
//
// A nil error means that the server acknowledged the COMMIT. After an error of f
// nothing was written; after an error of COMMIT the outcome is unknown.
func (s *Store) transact(ctx context.Context, f func(conn *sql.Conn) error) error {
	conn, err := s.begin(ctx)
	if err != nil {
		return fmt.Errorf("begin: %w", err)
	}
	// Close after discard is harmless, and its error tells nothing new.
	defer func() { _ = conn.Close() }()
	if err := f(conn); err != nil {
		if _, failed := conn.ExecContext(ctx, "ROLLBACK"); failed != nil {
			discard(conn)
		}
		return err
	}
	if _, err := conn.ExecContext(ctx, "COMMIT"); err != nil {
		discard(conn)
		return fmt.Errorf("commit: %w", err)
	}
	return nil
}

// change is transact for everything but ranges: f changes nothing in the database of another
// cluster. A range, its return and a repair compare more, once their row is locked (sameOwner).
//
// What f reads is never older than a lock that it has waited for. In MySQL all plain reads of a
// transaction see the database as it was at the first of them, so the one that compares the
// cluster must not be plain: f would not see what the other transaction has written.
func (s *Store) change(ctx context.Context, f func(conn *sql.Conn) error) error {
	return s.transact(ctx, func(conn *sql.Conn) error {
		if err := s.sameCluster(ctx, conn, s.sql.ofChange); err != nil {
			return err
		}
		return f(conn)
	})
}

// look calls f with a connection to the database of this node's cluster. f only reads, and
// may be called again.
func (s *Store) look(ctx context.Context, f func(q querier) error) error {
	return s.lookIn(ctx, s.read, f)
}

// lookLayout is look with what the database has.
func (s *Store) lookLayout(ctx context.Context, f func(q querier, l *layout) error) error {
	return s.withLayout(ctx, func(l *layout) error {
		return s.look(ctx, func(q querier) error { return f(q, l) })
	})
}

// lookIn is look by one of the pools.
func (s *Store) lookIn(ctx context.Context, pool *sql.DB, f func(q querier) error) error {
	if s.identity.asked() == "" {
		return f(pool)
	}
	for dead := 0; ; dead++ {
		err := s.lookOnce(ctx, pool, f)
		if !errors.Is(err, driver.ErrBadConn) || ctx.Err() != nil || dead > s.cfg.MaxConns {
			return err
		}
	}
}

func (s *Store) lookOnce(ctx context.Context, pool *sql.DB, f func(q querier) error) error {
	conn, err := pool.Conn(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }() // a broken one tells so in the call of f
	if err := s.sameCluster(ctx, conn, s.sql.cluster); err != nil {
		return err
	}
	return f(conn)
}

// Pauses before what ended by a deadlock is tried again: random ones, the first below firstPause, each
// of the next ones below twice that of before, and none above longestPause.
const (
	firstPause   = 2 * time.Millisecond
	longestPause = 128 * time.Millisecond
)

// again calls f until it ends otherwise than by a deadlock or a serialization failure. Transactions that
// lock the same missing row and then insert it end one another on MariaDB and MySQL. Without a pause each
// locks it again before another one can insert: 16 commands kept a server busy for minutes.
func (s *Store) again(ctx context.Context, f func() error) error {
	for most := firstPause; ; most = min(2*most, longestPause) {
		err := f()
		if err == nil || s.dialect.kindOf(err) != kindSerialize {
			return err
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(rand.N(most)):
		}
	}
}

// begin returns a connection on which a transaction was begun. Nothing was done
// before that, so it tries again where a pooled connection turns out to be dead,
// and for as long as ctx lasts where another process writes to an embedded
// database, whose own waiting knows no context.
func (s *Store) begin(ctx context.Context) (*sql.Conn, error) {
	for dead := 0; ; {
		conn, err := s.write.Conn(ctx)
		if err == nil {
			if _, err = conn.ExecContext(ctx, s.dialect.begin(s.cfg.idle)); err == nil {
				return conn, nil
			}
			if s.dialect.kindOf(err) != kindBusy {
				discard(conn)
			}
			_ = conn.Close()
		}
		switch {
		case ctx.Err() != nil:
			return nil, err
		case s.dialect.kindOf(err) == kindBusy:
		case errors.Is(err, driver.ErrBadConn) && dead <= s.cfg.MaxConns:
			dead++
		default:
			return nil, err
		}
	}
}

// discard makes the pool drop a connection whose state is not known.
func discard(conn *sql.Conn) {
	_ = conn.Raw(func(any) error { return driver.ErrBadConn })
}

// errUnreadable: a row is there, and a column of it is not what it must be.
var errUnreadable = errors.New("the row cannot be read")

// queryRow runs a query for at most one row and scans it. ok is false without a
// row. It reads to the end of the answer, where a server reports what failed
// after the row was sent.
func queryRow(ctx context.Context, q querier, query string, args, dest []any) (ok bool, err error) {
	rows, err := q.QueryContext(ctx, query, args...)
	if err != nil {
		return false, err
	}
	defer func() {
		if closed := rows.Close(); err == nil {
			err = closed
		}
		ok = ok && err == nil
	}()
	for n := 0; rows.Next(); n++ {
		if n > 0 {
			return false, errTwoRows
		}
		if err := rows.Scan(dest...); err != nil {
			return false, fmt.Errorf("%w: %w", errUnreadable, err)
		}
		ok = true
	}
	return ok, rows.Err()
}

// eachRow calls each with the rows of a query.
func eachRow(ctx context.Context, q querier, query string, args []any, each func(rows *sql.Rows) error) (err error) {
	rows, err := q.QueryContext(ctx, query, args...)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		if err := each(rows); err != nil {
			return err
		}
	}
	return rows.Err()
}

// exec runs one statement in a transaction, because the server's default may be not to
// commit by itself. It must be one that may be repeated.
func (s *Store) exec(ctx context.Context, query string, args ...any) error {
	return s.again(ctx, func() error {
		return s.change(ctx, func(conn *sql.Conn) error {
			_, err := conn.ExecContext(ctx, query, args...)
			return err
		})
	})
}

type querier interface {
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
}
