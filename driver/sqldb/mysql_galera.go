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
//
// A member acknowledges a commit before the other members have applied it. A plain reading at
// another one would not show it for milliseconds, and for minutes at a member that is behind. A
// claim of a worker ID would take records for lost, and a repair could miss a node. So in a group
// each transaction and each reading first waits for what the group has committed. A server that
// lets sessions wait for more keeps it.

const (
	galeraWaits    = "SET SESSION wsrep_sync_wait = @@SESSION.wsrep_sync_wait | 1"
	groupWaits     = "SET SESSION group_replication_consistency = 'BEFORE'"
	groupWaitsMore = "SET SESSION group_replication_consistency = 'BEFORE_AND_AFTER'"
)

// enterGroup sets galera for good if the connection leads into a Galera group, and lets the session
// wait if it leads into one or into MySQL Group Replication. A MySQL server without a group has the
// variable of Group Replication, too, which does nothing there. It comes before any statement of a
// caller, so that a caller that has used the connection, and then finds galera unset, has met no
// Galera group.
func enterGroup(ctx context.Context, c driver.Conn, galera *atomic.Bool) error {
	variables, err := groupVariables(ctx, c)
	if err != nil {
		return err
	}
	if on, has := variables["wsrep_on"]; has && on != "OFF" {
		galera.Store(true)
		return execOn(ctx, c, galeraWaits)
	}
	switch waits, has := variables["group_replication_consistency"]; {
	case !has, waits == "BEFORE_AND_AFTER":
		return nil
	case waits == "AFTER":
		return execOn(ctx, c, groupWaitsMore)
	}
	return execOn(ctx, c, groupWaits)
}

// groupVariables returns what a session says of its group.
func groupVariables(ctx context.Context, c driver.Conn) (variables map[string]string, err error) {
	const query = "SHOW SESSION VARIABLES WHERE Variable_name IN ('wsrep_on', 'group_replication_consistency')"
	rows, err := c.(driver.QueryerContext).QueryContext(ctx, query, nil)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	variables = map[string]string{}
	values := make([]driver.Value, len(rows.Columns()))
	for {
		switch err := rows.Next(values); {
		case errors.Is(err, io.EOF):
			return variables, nil
		case err != nil:
			return nil, err
		case len(values) != 2:
			return nil, fmt.Errorf("read the variables of a group: %d columns, want 2", len(values))
		}
		name, _ := values[0].([]byte)
		value, _ := values[1].([]byte)
		variables[string(name)] = string(value)
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
