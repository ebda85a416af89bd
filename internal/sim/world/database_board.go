package world

import (
	"context"
	"slices"

	"github.com/leaf-idgen/leaf/driver/memory"
	"github.com/leaf-idgen/leaf/segment"
)

var _ segment.Board = (*Store)(nil)

// boardChange is a write to the board. It is no commit of its own in the history, so
// that a replica which misses a few commits misses ranges: it is lost with the commit
// before it.
type boardChange struct {
	after int // commits
	do    func(*memory.Store)
}

// write is a write to the board.
func (s *Store) write(ctx context.Context, what string, do func(*memory.Store)) error {
	_, err := ask(ctx, s, what, "", Repeatable, func(x *side) (struct{}, error) {
		do(x.store)
		x.board = append(x.board, boardChange{len(x.past), do})
		return struct{}{}, s.c.db.commit(what)
	})
	return err
}

// Notices implements segment.Board.
func (s *Store) Notices(ctx context.Context) ([]segment.Notice, error) {
	return ask(ctx, s, "read notices", "", Repeatable, func(x *side) ([]segment.Notice, error) {
		return x.store.Notices(context.Background())
	})
}

// Post implements segment.Board.
func (s *Store) Post(ctx context.Context, n segment.Notice) error {
	return s.write(ctx, "post a notice", func(m *memory.Store) { _ = m.Post(context.Background(), n) })
}

// Answer implements segment.Board.
func (s *Store) Answer(ctx context.Context, a segment.Answer) error {
	return s.write(ctx, "answer", func(m *memory.Store) { _ = m.Answer(context.Background(), a) })
}

// Answers implements segment.Board.
func (s *Store) Answers(ctx context.Context, tag string) ([]segment.Answer, error) {
	return ask(ctx, s, "read answers", "", Repeatable, func(x *side) ([]segment.Answer, error) {
		return x.store.Answers(context.Background(), tag)
	})
}

// Forget implements segment.Board.
func (s *Store) Forget(ctx context.Context, tag string, asked int64) error {
	return s.write(ctx, "forget a question", func(m *memory.Store) { _ = m.Forget(context.Background(), tag, asked) })
}

// Forgotten implements segment.Board.
func (s *Store) Forgotten(ctx context.Context) (int64, error) {
	return ask(ctx, s, "read the last question that was forgotten", "", Repeatable, func(x *side) (int64, error) {
		return x.store.Forgotten(context.Background())
	})
}

// Enter implements segment.Board.
func (s *Store) Enter(ctx context.Context, member segment.Member) error {
	if s.Entered != nil {
		s.Entered(member)
	}
	return s.write(ctx, "enter", func(m *memory.Store) { _ = m.Enter(context.Background(), member) })
}

// Leave implements segment.Board.
func (s *Store) Leave(ctx context.Context, node string) error {
	return s.write(ctx, "leave", func(m *memory.Store) { _ = m.Leave(context.Background(), node) })
}

// Nodes implements segment.Board.
func (s *Store) Nodes(ctx context.Context) ([]segment.Member, error) {
	return ask(ctx, s, "read the nodes", "", Repeatable, func(x *side) ([]segment.Member, error) {
		return x.store.Nodes(context.Background())
	})
}

// Repaired returns where the last repair that the first side knows of moved the row.
func (d *Database) Repaired(tag string) int64 {
	notices, _ := d.sides[0].store.Notices(context.Background())
	for _, n := range notices {
		if n.Tag == tag {
			return n.Repaired
		}
	}
	return 0
}

// Told returns the highest number that a notice on any side names: what a node may have heard.
func (d *Database) Told(tag string) (highest int64) {
	for _, x := range d.sides {
		notices, _ := x.store.Notices(context.Background())
		for _, n := range notices {
			if n.Tag == tag {
				highest = max(highest, n.Repaired, n.Regress)
			}
		}
	}
	return highest
}

// Lists reports whether the first side has an entry of the process under its name.
func (d *Database) Lists(m segment.Member) bool {
	nodes, _ := d.sides[0].store.Nodes(context.Background())
	return slices.ContainsFunc(nodes, func(x segment.Member) bool { return x.Node == m.Node && x.Process == m.Process })
}
