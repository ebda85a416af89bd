package sqldb

import (
	"context"
	"database/sql"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/leaf-idgen/leaf/segment"
)

var _ segment.Board = (*Store)(nil)

// boardStatements are the texts for leaf_repair and leaf_repair_node. A node that takes
// ranges has a row in the second one whose tag is empty, beside its answers. Its columns
// asked and high are Member.Process and Member.Fence. A deleted row of leaf_alloc has a row
// there whose node is segment.DeletedRow. The number of the last question that was forgotten
// is in a row whose tag is empty and whose node is lastQuestion. Its column seen is 0, so it
// does not count as a node.
type boardStatements struct {
	notices string
	notice  string // tag
	post    string // tag, asked, regress, repaired
	answer  string // tag, node, asked, high, latched
	answers string // tag
	all     string // answers about every tag
	deleted string // tag, segment.DeletedRow, high
	forget  string // tag, asked
	last    string // lastQuestion, asked
	empty   string // tag
	leave   string // node
	nodes   string // age in ms

	outdated string // age in ms, number of rows
	remove   string // tag, node, age in ms
}

func (d *dialect) boardStatements() boardStatements {
	largerIn := func(table, column string) string {
		return fmt.Sprintf("%s = %s(%s.%s, %s)", column, d.greatest, table, column, fmt.Sprintf(d.proposed, column))
	}
	larger := func(column string) string { return largerIn("leaf_repair", column) }
	const (
		notices = "SELECT biz_tag, asked, regress, repaired FROM leaf_repair"
		answers = "SELECT biz_tag, node, asked, high, latched FROM leaf_repair_node"
	)
	outdated, remove := d.outdatedStatements()
	return boardStatements{
		outdated: outdated, remove: remove,
		notices: notices,
		notice:  d.bind(notices + " WHERE biz_tag = ?"),
		post: d.bind("INSERT INTO leaf_repair (biz_tag, asked, regress, repaired, update_time) VALUES (?, ?, ?, ?, CURRENT_TIMESTAMP)" +
			d.onConflict("biz_tag", "update_time") + ", " + larger("asked") + ", " + larger("regress") + ", " + larger("repaired")),
		answer: d.bind("INSERT INTO leaf_repair_node (biz_tag, node, asked, high, latched, seen, update_time) VALUES (?, ?, ?, ?, ?, " + d.now +
			", CURRENT_TIMESTAMP)" + d.onConflict("biz_tag, node", "asked", "high", "latched", "seen", "update_time")),
		answers: d.bind(answers + " WHERE biz_tag = ?"),
		all:     answers + " WHERE biz_tag <> ''",
		deleted: d.bind("INSERT INTO leaf_repair_node (biz_tag, node, asked, high, latched, seen, update_time) VALUES (?, ?, 0, ?, false, " + d.now +
			", CURRENT_TIMESTAMP)" + d.onConflict("biz_tag, node", "seen", "update_time") + ", " + largerIn("leaf_repair_node", "high")),
		forget: d.bind("DELETE FROM leaf_repair WHERE biz_tag = ? AND asked = ? AND regress = 0 AND repaired = 0"),
		last: d.bind("INSERT INTO leaf_repair_node (biz_tag, node, asked, high, latched, seen, update_time) VALUES ('', ?, ?, 0, false, 0, CURRENT_TIMESTAMP)" +
			d.onConflict("biz_tag, node", "update_time") + ", " + largerIn("leaf_repair_node", "asked")),
		empty: d.bind("DELETE FROM leaf_repair_node WHERE biz_tag = ? AND high = 0 AND NOT latched"),
		leave: d.bind("DELETE FROM leaf_repair_node WHERE biz_tag = '' AND node = ?"),
		nodes: d.bind("SELECT node, asked, high FROM leaf_repair_node WHERE biz_tag = '' AND seen > " + d.now + " - ?"),
	}
}

// Notices implements segment.Board.
func (s *Store) Notices(ctx context.Context) (all []segment.Notice, err error) {
	defer s.boardDone(ctx, time.Now(), &err, "read the notices of a regress")
	err = s.look(ctx, func(q querier) (err error) {
		all, err = s.scanNotices(ctx, q, s.board.notices)
		return err
	})
	return all, err
}

func (s *Store) scanNotices(ctx context.Context, q querier, query string, args ...any) (all []segment.Notice, err error) {
	err = eachRow(ctx, q, query, args, func(rows *sql.Rows) error {
		var n segment.Notice
		err := rows.Scan(&n.Tag, &n.Asked, &n.Regress, &n.Repaired)
		all = append(all, n)
		return err
	})
	return all, err
}

// Post implements segment.Board.
func (s *Store) Post(ctx context.Context, n segment.Notice) (err error) {
	defer s.boardDone(ctx, time.Now(), &err, "post a notice of tag %q", n.Tag)
	return s.exec(ctx, s.board.post, n.Tag, n.Asked, n.Regress, n.Repaired)
}

// Answer implements segment.Board.
func (s *Store) Answer(ctx context.Context, a segment.Answer) (err error) {
	defer s.boardDone(ctx, time.Now(), &err, "answer about tag %q", a.Tag)
	return s.exec(ctx, s.board.answer, a.Tag, a.Node, a.Asked, a.High, a.Latched)
}

// Answers implements segment.Board.
func (s *Store) Answers(ctx context.Context, tag string) (all []segment.Answer, err error) {
	defer s.boardDone(ctx, time.Now(), &err, "read the answers about tag %q", tag)
	return s.lookForAnswers(ctx, s.board.answers, tag)
}

// AllAnswers returns the answers about all tags.
func (s *Store) AllAnswers(ctx context.Context) (all []segment.Answer, err error) {
	defer s.boardDone(ctx, time.Now(), &err, "read the answers about all tags")
	return s.lookForAnswers(ctx, s.board.all)
}

func (s *Store) lookForAnswers(ctx context.Context, query string, args ...any) (all []segment.Answer, err error) {
	err = s.look(ctx, func(q querier) (err error) {
		all, err = s.scanAnswers(ctx, q, query, args...)
		return err
	})
	return all, err
}

func (s *Store) scanAnswers(ctx context.Context, q querier, query string, args ...any) (all []segment.Answer, err error) {
	err = eachRow(ctx, q, query, args, func(rows *sql.Rows) error {
		var a segment.Answer
		err := rows.Scan(&a.Tag, &a.Node, &a.Asked, &a.High, &a.Latched)
		all = append(all, a)
		return err
	})
	return all, err
}

// KeepEnds leaves on the board what Delete leaves of rows: where the numbers of their tags end.
func (s *Store) KeepEnds(ctx context.Context, ends map[string]int64) (err error) {
	if len(ends) == 0 {
		return nil
	}
	defer s.boardDone(ctx, time.Now(), &err, "keep where the numbers of tags end")
	return s.again(ctx, func() error {
		return s.change(ctx, func(conn *sql.Conn) error {
			for _, tag := range slices.Sorted(maps.Keys(ends)) {
				if err := s.keepEnd(ctx, conn, tag, ends[tag]); err != nil {
					return err
				}
			}
			return nil
		})
	})
}

func (s *Store) keepEnd(ctx context.Context, conn *sql.Conn, tag string, maxID int64) error {
	_, err := conn.ExecContext(ctx, s.board.deleted, tag, segment.DeletedRow, segment.DeletedEnd(maxID))
	return err
}

// lastQuestion stands for a node in the row that keeps the number of the last question that
// was forgotten. The identity of a data directory never is it.
const lastQuestion = "last-question"

// Forget implements segment.Board.
func (s *Store) Forget(ctx context.Context, tag string, asked int64) (err error) {
	defer s.boardDone(ctx, time.Now(), &err, "forget a question about tag %q", tag)
	return s.again(ctx, func() error {
		return s.change(ctx, func(conn *sql.Conn) error {
			result, err := conn.ExecContext(ctx, s.board.forget, tag, asked)
			if err != nil {
				return err
			}
			if n, err := result.RowsAffected(); err != nil || n == 0 {
				return err
			}
			if _, err := conn.ExecContext(ctx, s.board.last, lastQuestion, asked); err != nil {
				return err
			}
			_, err = conn.ExecContext(ctx, s.board.empty, tag)
			return err
		})
	})
}

// Forgotten implements segment.Board.
func (s *Store) Forgotten(ctx context.Context) (asked int64, err error) {
	defer s.boardDone(ctx, time.Now(), &err, "read the last question that was forgotten")
	all, err := s.lookForAnswers(ctx, s.board.answers, "")
	for _, x := range all {
		asked = max(asked, x.Asked)
	}
	return asked, err
}

// Enter implements segment.Board.
func (s *Store) Enter(ctx context.Context, m segment.Member) (err error) {
	defer s.boardDone(ctx, time.Now(), &err, "note that node %s is there", m.Node)
	if err := s.exec(ctx, s.board.answer, "", m.Node, m.Process, m.Fence, false); err != nil {
		return err
	}
	if err := s.sweepBoard(ctx); err != nil { // the node has entered all the same
		s.cfg.Logger.Debug("old rows of leaf_repair_node could not be deleted", "store", s.Redacted(), "error", err)
	}
	return nil
}

// Leave implements segment.Board.
func (s *Store) Leave(ctx context.Context, node string) (err error) {
	defer s.boardDone(ctx, time.Now(), &err, "note that node %s is gone", node)
	return s.exec(ctx, s.board.leave, node)
}

// Nodes implements segment.Board.
func (s *Store) Nodes(ctx context.Context) ([]segment.Member, error) {
	return s.NodesSince(ctx, segment.BoardAge)
}

// NodesSince returns the nodes of Nodes that entered within an age.
func (s *Store) NodesSince(ctx context.Context, age time.Duration) (nodes []segment.Member, err error) {
	defer s.boardDone(ctx, time.Now(), &err, "read which nodes are there")
	err = s.look(ctx, func(q querier) error {
		nodes = nil
		return eachRow(ctx, q, s.board.nodes, []any{age.Milliseconds()}, func(rows *sql.Rows) error {
			var m segment.Member
			err := rows.Scan(&m.Node, &m.Process, &m.Fence)
			nodes = append(nodes, m)
			return err
		})
	})
	return nodes, err
}

// boardDone is done, with the name of the table that is missing.
func (s *Store) boardDone(ctx context.Context, start time.Time, err *error, step string, args ...any) {
	if *err != nil && ctx.Err() == nil && s.dialect.kindOf(*err).missing() {
		*err = s.noBoard(*err)
	}
	s.done(ctx, start, err, step, args...)
}

// noBoard is segment.ErrSchema. When the server does not tell whether the tables exist, it is
// segment.ErrDenied as well: numbers that the user may not read must not count as none.
func (s *Store) noBoard(cause error) error {
	if s.dialect.kindOf(cause) == kindHidden {
		return s.schemaError("the tables leaf_repair and leaf_repair_node, in which nodes tell of their numbers, are missing, or the user lacks the rights "+
			tableRights+" on them, and the server does not tell which: let an administrator of the database grant these", deniedError{cause})
	}
	return s.schemaError("the database has no usable tables leaf_repair and leaf_repair_node", cause)
}

// deniedError is its cause and segment.ErrDenied.
type deniedError struct{ error }

// Unwrap returns both.
func (e deniedError) Unwrap() []error { return []error{segment.ErrDenied, e.error} }
