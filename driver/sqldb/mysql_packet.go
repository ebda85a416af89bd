package sqldb

import (
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"fmt"

	"github.com/go-sql-driver/mysql"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/segment"
)

// mysqlPacket is a load: a whole transaction that changes one row, in one round trip. It sets
// nothing and asks nothing of the session: whether the session commits by itself, which
// sql_mode it has and what it did before make no difference, neither here nor on a
// replica that carries out the statement again. The row is read under its lock before
// and after the change, so that what the server did is seen and not believed.
//
// Each answer repeats a random word of its question, so that the answer to another
// question is not taken for it. The last one comes after the COMMIT: the server skips
// everything behind a statement that fails.
//
// owner is what the packet asks of leaf_meta, after the row is locked: an earlier
// reading would open a snapshot, in which MariaDB refuses a row that changed since.
func mysqlPacket(owner string) string {
	const row = "SELECT ?, biz_tag, max_id, step FROM leaf_alloc WHERE biz_tag = ? FOR UPDATE; "
	return "START TRANSACTION; " + row +
		"UPDATE leaf_alloc SET max_id = max_id + ?, update_time = CURRENT_TIMESTAMP" +
		" WHERE biz_tag = ? AND " + mysqlExact + " AND step = ? AND max_id >= 0 AND max_id <= ?; " +
		row + "SELECT ?, " + owner + "; COMMIT; SELECT ?"
}

// The same packet, without and with a check of the cluster and the tag rule that the database belongs to.
var (
	mysqlReserve      = mysqlPacket(noOwner)
	mysqlReserveOwner = mysqlPacket(ownerValues)
)

// errAnswer: the server has answered something else than what it was asked.
var errAnswer = errors.New("the answer does not belong to the question; a proxy or the driver has mixed up its connections")

// sendPacket sends a packet, and returns the row as it was before and after. A nil error
// means that the server acknowledged the COMMIT, and that the database has no other owner.
func (s *Store) sendPacket(ctx context.Context, packet string, req segment.Request) (before, after state, err error) {
	word, tag := rand.Text(), req.Tag
	rows, err := s.write.QueryContext(ctx, packet, word, tag, req.Length, tag, tag, req.Step, segment.MaxMaxID-req.Length, word, tag, word, word)
	if err != nil {
		return state{}, state{}, err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	first, err := packetRow(rows)
	if errors.Is(err, errUnreadable) {
		err = fmt.Errorf("%w: %w", leaf.ErrInvalidRow, err)
	}
	if err != nil {
		return state{}, state{}, err
	}
	second, err := packetRow(rows)
	if err != nil {
		return state{}, state{}, err
	}
	var echo string
	var asked owner
	found, err := packetAnswer(rows, append([]any{&echo}, asked.dest()...)...)
	if err != nil { // of what comes behind this answer
		return state{}, state{}, fmt.Errorf("commit: %w", err)
	}
	if !found || echo != word {
		return state{}, state{}, fmt.Errorf("read whose the database is: %w", errAnswer)
	}
	found, err = packetAnswer(rows, &echo)
	if err != nil {
		return state{}, state{}, fmt.Errorf("read the answer behind the commit: %w", err)
	}
	if !found || echo != word {
		return state{}, state{}, fmt.Errorf("read the answer behind the commit: %w", errAnswer)
	}
	if err := s.identity.checkOwner(asked); err != nil {
		return state{}, state{}, err
	}
	return first.state, second.state, errors.Join(first.check(word, tag), second.check(word, tag))
}

// packetRead is the answer to a SELECT of a packet.
type packetRead struct {
	found      bool
	echo, name string
	state
}

// check returns leaf.ErrUnknownTag without a row, or with one of another tag.
func (r packetRead) check(word, tag string) error {
	switch {
	case !r.found:
		return leaf.ErrUnknownTag
	case r.echo != word:
		return errAnswer
	case r.name != tag:
		return fmt.Errorf("%w: the table compares %q as equal, but it is another tag", leaf.ErrUnknownTag, r.name)
	}
	return nil
}

func packetRow(rows *sql.Rows) (r packetRead, err error) {
	r.found, err = packetAnswer(rows, &r.echo, &r.name, &r.maxID, &r.step)
	return r, err
}

// packetAnswer reads one answer of at most one row, and turns to the next answer.
func packetAnswer(rows *sql.Rows, dest ...any) (found bool, err error) {
	for rows.Next() {
		if found {
			return false, errTwoRows
		}
		if err := rows.Scan(dest...); err != nil {
			return false, fmt.Errorf("%w: %w", errUnreadable, err)
		}
		found = true
	}
	if err := rows.Err(); err != nil {
		return false, err
	}
	rows.NextResultSet() // false after the last answer, or with an error
	return found, rows.Err()
}

// reserveMySQL is rule H: the row's step is compared with the one
// that the caller believes, so that an edited step takes effect with the next load.
func reserveMySQL(ctx context.Context, s *Store, req segment.Request) (segment.Reservation, bool, error) {
	if req.Step == 0 {
		return segment.Reservation{}, false, nil
	}
	packet := mysqlReserveOwner
	if s.identity.isBlind() {
		packet = mysqlReserve
	}
	var before, after state
	// In a Galera group a COMMIT that conflicts with another node's is rolled back.
	err := s.again(ctx, func() (err error) {
		before, after, err = s.sendPacket(ctx, packet, req)
		return err
	})
	var refused *mysql.MySQLError
	switch {
	case errors.As(err, &refused) && refused.Number == 1064: // a proxy that takes one statement at a time
		return segment.Reservation{}, false, nil
	case err != nil:
		return segment.Reservation{}, false, err
	case after.maxID == before.maxID:
		return segment.Reservation{}, false, nil
	case after.maxID-before.maxID != req.Length || after.step != req.Step:
		return segment.Reservation{}, false, errMoved(before.maxID, after.maxID, req.Length)
	}
	res, err := rangeBelow(after.maxID, req.Length, req.Step)
	return res, true, err
}
