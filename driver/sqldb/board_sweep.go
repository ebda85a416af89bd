package sqldb

import (
	"context"
	"database/sql"
	"time"

	"github.com/leaf-idgen/leaf/segment"
)

// A node that has crashed leaves its row in leaf_repair_node, and a node that answers a question
// about a tag of which it holds no numbers leaves a row, too. Where each start has a new data
// directory, no later process replaces these rows. After segment.BoardAge no repair asks such a
// node or waits for such an answer. The node that enters then deletes up to sweptAtOnce of the
// rows, at most once in sweepEvery. Rows with numbers stay.
const outdated = "seen > 0 AND (biz_tag = '' OR high = 0 AND NOT latched) AND seen < "

func (d *dialect) outdatedStatements() (find, remove string) {
	return d.bind("SELECT biz_tag, node FROM leaf_repair_node WHERE " + outdated + d.now + " - ? LIMIT ?"),
		d.bind("DELETE FROM leaf_repair_node WHERE biz_tag = ? AND node = ? AND " + outdated + d.now + " - ?")
}

// sweepBoard deletes rows that are of no use any more, if it is time. It looks for them first,
// because a DELETE that searches would lock the rows of nodes that are there.
func (s *Store) sweepBoard(ctx context.Context) error {
	now, due := int64(time.Since(s.born)), s.boardDue.Load()
	if now < max(due, int64(sweepEvery)) || !s.boardDue.CompareAndSwap(due, now+int64(sweepEvery)) {
		return nil // not at a start either, which is to serve soon
	}
	age := segment.BoardAge.Milliseconds()
	var found [][2]string
	err := eachRow(ctx, s.read, s.board.outdated, []any{age, sweptAtOnce}, func(rows *sql.Rows) error {
		var row [2]string
		err := rows.Scan(&row[0], &row[1])
		found = append(found, row)
		return err
	})
	if err != nil || len(found) == 0 {
		return err
	}
	return s.again(ctx, func() error {
		return s.change(ctx, func(conn *sql.Conn) error {
			for _, row := range found {
				if _, err := conn.ExecContext(ctx, s.board.remove, row[0], row[1], age); err != nil {
					return err
				}
			}
			return nil
		})
	})
}
