package sqldb

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"time"

	"github.com/leaf-idgen/leaf/segment"
)

// Transact runs a statement and f in a transaction.
func (s *Store) Transact(ctx context.Context, statement string, f func()) error {
	return s.transact(ctx, func(conn *sql.Conn) error {
		_, err := conn.ExecContext(ctx, statement)
		f()
		return err
	})
}

// RunFor makes the store one that was opened so long ago.
func (s *Store) RunFor(d time.Duration) { s.born = s.born.Add(-d) }

// WithFaults returns c with something between this package and the database drivers.
func WithFaults(c Config, faults func(driver.Connector) driver.Connector) Config {
	c.faults = faults
	return c
}

// EnterGroup prepares a session of MySQL or MariaDB that may lead into a group.
var EnterGroup = enterGroup

// ChecksRows reports whether a server with this version obeys CHECK.
var ChecksRows = checksRows

// StopSequence returns the statement that keeps a sequence, whose last number was read so, below first.
func StopSequence(highest any, first int64) string {
	var q sequence
	_ = q.highest.Scan(highest)
	return q.stop("MAXVALUE %d")(first)
}

// RepeatsMySQL reports whether a transaction is repeated after an error of MySQL.
func RepeatsMySQL(err error) bool { return mysqlKind(err) == kindSerialize }

// RereadRule reads what is recorded of a tag rule, and returns what is written for it.
func RereadRule(b *segment.Binding) (*segment.Binding, error) {
	r, err := recordOf(&stored{Binding: *b})
	return r.record().of(), err
}

// Again repeats f as a transaction that ended by a deadlock.
func (s *Store) Again(ctx context.Context, f func() error) error { return s.again(ctx, f) }

// WithLatecomers returns a connector whose callers wait for at most timeout.
func WithLatecomers(c driver.Connector, timeout time.Duration, keep bool) driver.Connector {
	return withLatecomers(c, timeout, keep)
}
