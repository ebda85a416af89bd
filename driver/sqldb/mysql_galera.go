package sqldb

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"sync/atomic"

	"github.com/leaf-idgen/leaf/segment"
)

// A node of a Galera group rolls a transaction back when another node's transaction has
// changed the same row. Between two statements of one message it tells no client: the next
// statement begins a transaction of its own, and the COMMIT succeeds although the UPDATE
// is gone. The SELECT behind it then shows what the other node has written, so two loads
// had one range (16 of 6,000 loads by nine callers at three nodes of MariaDB 10.11). With
// one statement in each message the server answers with a deadlock. So a load from a
// Galera group is a transaction of single statements.
//
// A group is known by its session variable wsrep_on. Each new connection reads it, because
// the name of a server can lead to another one at any time.

// noteGalera sets galera for good if the connection leads into a Galera group. It comes
// before any statement of a caller, so that a caller that has used the connection, and then
// finds galera unset, has met no group.
func noteGalera(ctx context.Context, c driver.Conn, galera *atomic.Bool) (err error) {
	rows, err := c.(driver.QueryerContext).QueryContext(ctx, "SHOW SESSION VARIABLES LIKE 'wsrep_on'", nil)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	values := make([]driver.Value, len(rows.Columns()))
	for {
		switch err := rows.Next(values); {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		case len(values) != 2:
			return fmt.Errorf("read wsrep_on: %d columns, want 2", len(values))
		}
		if value, ok := values[1].([]byte); !ok || string(value) != "OFF" {
			galera.Store(true)
		}
	}
}

// inGalera reports whether some connection of the pool has led into a Galera group.
func (p pools) inGalera() bool { return p.galera != nil && p.galera.Load() }

// reserveInGalera is reserve by single statements. It looks before it locks, as reserve
// does.
func (s *Store) reserveInGalera(ctx context.Context, req segment.Request) (segment.Reservation, error) {
	if _, err := s.readRow(ctx, s.read, req.Tag); err != nil {
		return segment.Reservation{}, err
	}
	return s.reserveLocked(ctx, req)
}
