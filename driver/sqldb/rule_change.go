package sqldb

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"time"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/segment"
)

// RuleChange is the change of the tag rule of a database by one command. Between Unbind and the
// end of the change no node binds the database, and none takes a range. If another command
// begins a change meanwhile, that one alone goes on: whatever this one found out may be wrong by now.
type RuleChange struct {
	s      *Store
	before *segment.Binding // nil: none
	past   rulePast         // of before
	next   rulePast         // of mark
	mark   segment.Binding  // of this change; no node has it
	to     segment.Binding  // what the command means to record

	rows    []segment.Row
	notices []segment.Notice
	answers []segment.Answer
}

// Unbind begins a change of the rule by a command, whose name no other command has. When it
// returns, the rows hold every range that was or will be taken by the rule before. After an error
// the rule may have been taken away, unless the change is nil. It is leaf.ErrConflict if the
// command has begun a change of the database before: two of its URLs lead there. The command means
// to record to, the zero Binding if it leaves the database out.
func (s *Store) Unbind(ctx context.Context, command string, to segment.Binding) (c *RuleChange, err error) {
	return s.unbind(ctx, command, to, false)
}

// UnbindFirst is Unbind of a database that has no binding, which is leaf.ErrConflict if it has
// one: whoever recorded it was faster.
func (s *Store) UnbindFirst(ctx context.Context, command string, to segment.Binding) (c *RuleChange, err error) {
	return s.unbind(ctx, command, to, true)
}

func (s *Store) unbind(ctx context.Context, command string, to segment.Binding, first bool) (c *RuleChange, err error) {
	defer s.done(ctx, time.Now(), &err, "take the rule away")
	if err := s.dialect.check(ctx, s, "leaf_alloc", "leaf_meta"); err != nil {
		return nil, err
	}
	before, err := s.binding(ctx, s.write, s.sql.meta)
	if err != nil {
		return nil, err
	}
	past := pastOf(before)
	if past.command == command {
		return nil, fmt.Errorf("%w: the command names this database twice: another of its URLs leads to it as well", leaf.ErrConflict)
	}
	if before != nil && first {
		return nil, errChanged
	}
	next := past
	next.command = command
	next.add(to)
	c = &RuleChange{s: s, before: before, past: past, to: to, next: next}
	c.mark = segment.Binding{Store: "-", Rule: next.String(), Stores: "-"}
	if before != nil {
		c.mark.Store, c.mark.Stores = before.Store, before.Stores
		if before.Rule == "" {
			c.mark.Stores = before.Store
		}
	}
	if err := s.replaceBinding(ctx, before, &c.mark); err != nil {
		return c, err
	}
	board, err := s.hasBoard(ctx)
	if err != nil {
		return c, err
	}
	return c, s.withLayout(ctx, func(l *layout) error {
		return s.again(ctx, func() error { return c.settle(ctx, l, board) })
	})
}

// hasBoard reports whether the tables are there in which nodes tell of numbers that the rows do not
// show. Error: segment.ErrDenied if the server does not tell.
func (s *Store) hasBoard(ctx context.Context) (bool, error) {
	for _, query := range []string{s.board.notices, s.board.all} {
		err := eachRow(ctx, s.write, query+" LIMIT 0", nil, func(*sql.Rows) error { return nil })
		switch kind := s.dialect.kindOf(err); {
		case err == nil:
		case kind == kindNoTable:
			return false, nil
		case kind == kindHidden:
			return false, fmt.Errorf("%w: the user may not read what nodes have told of their numbers, in the tables leaf_repair and leaf_repair_node, or the tables are missing: give the user the right to read them: %w", segment.ErrDenied, err)
		default:
			return false, fmt.Errorf("read what nodes have told: %w", err)
		}
	}
	return true, nil
}

// settle reads what is compared in the transaction that waits for the loads: behind a proxy or in a
// group another statement may be answered by a server that has not heard of them yet.
func (c *RuleChange) settle(ctx context.Context, l *layout, board bool) error {
	return c.s.transact(ctx, func(conn *sql.Conn) (err error) {
		for _, statement := range c.s.dialect.settle {
			if _, err := conn.ExecContext(ctx, statement); err != nil {
				return fmt.Errorf("wait for the loads under way: %w", err)
			}
		}
		if c.rows, err = scanRows(ctx, conn, l.readAll); err != nil || !board {
			return err
		}
		if c.notices, err = c.s.scanNotices(ctx, conn, c.s.board.notices); err == nil {
			c.answers, err = c.s.scanAnswers(ctx, conn, c.s.board.all)
		}
		return err
	})
}

// Rows returns all rows, without their options, as they were when the loads had ended. No range was
// taken since by the rule before.
func (c *RuleChange) Rows() []segment.Row { return c.rows }

// Told returns what nodes have told of numbers that the rows do not show, and where rows ended that
// were deleted, as of the same moment.
func (c *RuleChange) Told() ([]segment.Notice, []segment.Answer) { return c.notices, c.answers }

// Before returns the binding that the database had, nil if none. After a change that did not end
// it has the names, but not the rule.
func (c *RuleChange) Before() *segment.Binding { return c.before }

// Rule returns the rule that the names in Before are from, "" if they are from none.
func (c *RuleChange) Rule() string { return c.past.rule }

// WasIn reports whether the database had that name in a rule, or was to get it by a change that did
// not end. A name alone says nothing: two rules, one behind the other, may give it to two databases.
func (c *RuleChange) WasIn(rule, name string) bool {
	return slices.Contains(c.past.parts, part(segment.Binding{Rule: rule, Store: name}))
}

// Decide says that no database of the rule before is missing among those whose change has begun. The
// command decides for all before it ends one of the changes. If it does not end the others, the next
// command must have each database that this one means to give a rule.
func (c *RuleChange) Decide(ctx context.Context) (err error) {
	defer c.s.done(ctx, time.Now(), &err, "decide on the rule")
	decided, next := c.mark, c.next
	if next.rule = c.to.Rule; c.to.Store != "" {
		decided.Store, decided.Stores = c.to.Store, c.to.Stores
	} else {
		next.rule, decided.Stores = "", decided.Store
	}
	decided.Rule = next.String()
	if err := c.s.replaceBinding(ctx, &c.mark, &decided); err != nil {
		return err
	}
	c.mark, c.next = decided, next
	return nil
}

// LeaveOut ends the change of a database that the new rule does not have.
func (c *RuleChange) LeaveOut(ctx context.Context) error {
	return c.Accept(ctx, segment.Binding{Store: c.mark.Store, Rule: leftOutRule, Stores: c.mark.Store})
}

// Accept ends the change and records b. It is the operator's word that the tags were moved to
// where the new rule expects them. A binding without a rule is recorded as well: a node that
// runs with the old rule would take a record that is gone for one that is still to be made.
func (c *RuleChange) Accept(ctx context.Context, b segment.Binding) (err error) {
	defer c.s.done(ctx, time.Now(), &err, "accept rule")
	return c.s.replaceBinding(ctx, &c.mark, &b)
}

// Undo ends the change and puts the binding back that the database had. Error: leaf.ErrConflict
// if that was the mark of a change that did not end, so that still no node binds the database.
func (c *RuleChange) Undo(ctx context.Context) (err error) {
	defer c.s.done(ctx, time.Now(), &err, "put the rule back")
	if err := c.s.replaceBinding(ctx, &c.mark, c.before); err != nil {
		return err
	}
	if c.past.command != "" {
		return fmt.Errorf("%w: the database had no rule before, because another leaf schema apply --accept-rule runs or was interrupted. "+
			"No node starts until the command ends well: run it with the new tag rule, or with the old one to go back to that", leaf.ErrConflict)
	}
	return nil
}

var errChanged = fmt.Errorf("%w: another command or node is recording its rule; when it has ended, try again", leaf.ErrConflict)

// replaceBinding records to in place of from; nil is no binding. Error: leaf.ErrConflict if the
// database has another one meanwhile.
func (s *Store) replaceBinding(ctx context.Context, from, to *segment.Binding) error {
	err := s.again(ctx, func() error {
		return s.transact(ctx, func(conn *sql.Conn) error {
			found, err := s.binding(ctx, conn, s.sql.lockMeta)
			switch {
			case err != nil, equal(found, to): // or it was done before, and the answer was lost
				return err
			case !equal(found, from):
				return errChanged
			}
			if _, err := conn.ExecContext(ctx, s.sql.deleteMeta); err != nil || to == nil {
				return err
			}
			return s.insertBinding(ctx, conn, *to)
		})
	})
	if err != nil && s.dialect.kindOf(err) == kindDuplicate {
		return errChanged
	}
	return err
}

func equal(a, b *segment.Binding) bool { return a == b || a != nil && b != nil && *a == *b }
