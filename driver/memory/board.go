package memory

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/leaf-idgen/leaf/segment"
)

var _ segment.Board = (*Store)(nil)

// board is what the nodes tell one another. A node that entered stays until it leaves.
type board struct {
	notices map[string]segment.Notice
	answers map[answerKey]segment.Answer
	nodes   map[string]segment.Member

	forgotten int64 // the highest number of a question that was removed
}

type answerKey struct{ tag, node string }

func newBoard() board {
	return board{notices: map[string]segment.Notice{}, answers: map[answerKey]segment.Answer{}, nodes: map[string]segment.Member{}}
}

// about returns the answers about a tag.
func (b *board) about(tag string) (all []segment.Answer) {
	for key, a := range b.answers {
		if key.tag == tag {
			all = append(all, a)
		}
	}
	return all
}

// deleted notes the end of a row that is deleted.
func (b *board) deleted(row segment.Row) {
	key := answerKey{row.Tag, segment.DeletedRow}
	end := max(b.answers[key].High, segment.DeletedEnd(row.MaxID))
	b.answers[key] = segment.Answer{Tag: row.Tag, Node: segment.DeletedRow, High: end}
}

// onBoard runs f under the lock, unless ctx has ended.
func (s *Store) onBoard(ctx context.Context, what string, f func(b *board)) error {
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	f(&s.board)
	return nil
}

// Notices implements segment.Board.
func (s *Store) Notices(ctx context.Context) (all []segment.Notice, err error) {
	err = s.onBoard(ctx, "read notices", func(b *board) {
		for _, tag := range slices.Sorted(maps.Keys(b.notices)) {
			all = append(all, b.notices[tag])
		}
	})
	return all, err
}

// Post implements segment.Board.
func (s *Store) Post(ctx context.Context, n segment.Notice) error {
	return s.onBoard(ctx, "post a notice", func(b *board) {
		was := b.notices[n.Tag]
		b.notices[n.Tag] = segment.Notice{
			Tag: n.Tag, Asked: max(was.Asked, n.Asked), Regress: max(was.Regress, n.Regress), Repaired: max(was.Repaired, n.Repaired),
		}
	})
}

// Answer implements segment.Board.
func (s *Store) Answer(ctx context.Context, a segment.Answer) error {
	return s.onBoard(ctx, "answer", func(b *board) { b.answers[answerKey{a.Tag, a.Node}] = a })
}

// Answers implements segment.Board.
func (s *Store) Answers(ctx context.Context, tag string) (all []segment.Answer, err error) {
	err = s.onBoard(ctx, "read answers", func(b *board) {
		all = b.about(tag)
		slices.SortFunc(all, func(x, y segment.Answer) int { return strings.Compare(x.Node, y.Node) })
	})
	return all, err
}

// Forget implements segment.Board.
func (s *Store) Forget(ctx context.Context, tag string, asked int64) error {
	return s.onBoard(ctx, "forget a question", func(b *board) {
		if b.notices[tag] != (segment.Notice{Tag: tag, Asked: asked}) {
			return
		}
		delete(b.notices, tag)
		b.forgotten = max(b.forgotten, asked)
		maps.DeleteFunc(b.answers, func(k answerKey, a segment.Answer) bool { return k.tag == tag && a.High == 0 && !a.Latched })
	})
}

// Forgotten implements segment.Board.
func (s *Store) Forgotten(ctx context.Context) (asked int64, err error) {
	err = s.onBoard(ctx, "read the last question that was forgotten", func(b *board) { asked = b.forgotten })
	return asked, err
}

// Enter implements segment.Board.
func (s *Store) Enter(ctx context.Context, m segment.Member) error {
	return s.onBoard(ctx, "enter", func(b *board) { b.nodes[m.Node] = m })
}

// Leave implements segment.Board.
func (s *Store) Leave(ctx context.Context, node string) error {
	return s.onBoard(ctx, "leave", func(b *board) { delete(b.nodes, node) })
}

// Nodes implements segment.Board.
func (s *Store) Nodes(ctx context.Context) (nodes []segment.Member, err error) {
	err = s.onBoard(ctx, "read the nodes", func(b *board) {
		for _, node := range slices.Sorted(maps.Keys(b.nodes)) {
			nodes = append(nodes, b.nodes[node])
		}
	})
	return nodes, err
}
