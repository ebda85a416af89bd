package sqldb

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/segment"
)

// RuleChange is the change of the tag rule of a database by one command, in two phases. From Unbind
// on no node binds the database, and none takes a range. When the command has begun with all
// databases and compared them, it calls Decide for each: those without a record first, and those
// that the rule leaves out last, when nothing can be refused any more. Then it calls Accept for
// each. If it is interrupted, then as long as it has decided nothing, any rule may follow; from
// then on none but its own. So a rule is recorded nowhere before all databases of the rule before
// are closed for good, whatever commands do at once or one after the other.
//
// If another command goes on with the database meanwhile, this one ends with leaf.ErrConflict.
type RuleChange struct {
	s     *Store
	to    segment.Binding // what the command means to record; without a name, the rule leaves the database out
	found ruleRecord      // by the command
	mark  ruleRecord      // of the command
	tried ruleRecord      // what may stand in its place, because the answer was lost

	rows    []segment.Row
	notices []segment.Notice
	answers []segment.Answer
}

// Unbind begins a change of the rule by a command, whose name no other command has. When it
// returns, the rows hold every range that was or will be taken by the rule before. After an error
// the rule may have been taken away, unless the change is nil. The command means to record to,
// whose Store is empty if that rule leaves the database out. It is leaf.ErrConflict if another
// rule was decided on, or if the command has begun a change of the database before: two of its
// URLs lead there.
func (s *Store) Unbind(ctx context.Context, command string, to segment.Binding) (c *RuleChange, err error) {
	return s.unbind(ctx, command, to, false)
}

// UnbindFirst is Unbind of a database that has no record of a rule. Error: leaf.ErrConflict if it
// has one, because another process was faster.
func (s *Store) UnbindFirst(ctx context.Context, command string, to segment.Binding) (c *RuleChange, err error) {
	return s.unbind(ctx, command, to, true)
}

func (s *Store) unbind(ctx context.Context, command string, to segment.Binding, first bool) (c *RuleChange, err error) {
	defer s.done(ctx, time.Now(), &err, "take the rule away")
	if err := s.dialect.check(ctx, s, segmentTables...); err != nil {
		return nil, err
	}
	b, err := s.binding(ctx, s.write, s.sql.meta)
	if err != nil {
		return nil, err
	}
	found, err := recordOf(b)
	if err != nil {
		return nil, err
	}
	c = &RuleChange{s: s, to: to, found: found, mark: found}
	switch c.mark.command = command; {
	case found.command == command:
		return nil, fmt.Errorf("%w: the command names this database twice: another of its URLs leads to it as well", leaf.ErrConflict)
	case found.state != noRecord && first:
		return nil, errChanged
	case found.state == decided && (found.next != to.Rule || found.nextName != nameSum(to.Store)):
		return nil, fmt.Errorf("%w: another leaf schema apply --accept-rule has begun to record the rule %q, and runs or was interrupted: "+
			"run it again, with that rule; when it has ended, change the rule", leaf.ErrConflict, found.next)
	case found.state != decided && found.state != begun:
		c.mark.state, c.mark.before = begun, found.state
	}
	if err := s.replaceBinding(ctx, b, c.mark.record()); err != nil {
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

// settle waits for the loads under way, and reads in the same transaction what is compared. Behind a
// proxy, or in a replication group, a server that answers a later statement may lag behind these loads.
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

// Before returns the rule by which nodes loaded before commands began to change it, nil if there is none.
func (c *RuleChange) Before() *segment.Binding {
	if before := c.found.base(); before.state == recorded {
		return &before.binding
	}
	return nil
}

// LeftOutBy returns the rule that has left the database out, with the name that the database had
// last; nil if none has.
func (c *RuleChange) LeftOutBy() *segment.Binding {
	if before := c.found.base(); before.state == leftOut {
		return &before.binding
	}
	return nil
}

// HadRecord reports whether the database had a rule, or was left out by one.
func (c *RuleChange) HadRecord() bool { return c.found.base().state != noRecord }

// Decision returns the command that has decided on the rule of this one here, and was interrupted,
// or "".
func (c *RuleChange) Decision() string {
	if c.found.state == decided {
		return c.found.decision
	}
	return ""
}

// IsRecordedBy reports whether the command of a decision has recorded the rule of this one here.
func (c *RuleChange) IsRecordedBy(decision string) bool {
	before := c.found.base()
	return before.state == recorded && before.binding.Same(c.to) && before.decision == decision && decision != ""
}

// SameCommand reports whether one command can have recorded the rules that both databases have: two
// clusters can have the same rule. It is not known of a version before, and after a decision.
func (c *RuleChange) SameCommand(other *RuleChange) bool {
	one, two := c.found.base().decision, other.found.base().decision
	return one == "" || two == "" || one == two
}

// Was reports whether the rule before had the database under this name. After a decision, it is
// also true of a database that the decided rule leaves out.
func (c *RuleChange) Was(rule, name, decision string) bool {
	before := c.found.base()
	switch {
	case before.binding.Store != name:
		return false
	case before.state == recorded:
		return before.binding.Rule == rule
	}
	return before.state == leftOut && before.was == rule && before.decision == decision && decision != ""
}

// Decide says that no database of the rule before is missing among those whose change has begun, and
// that all are compared. The database of a rule that leaves it out is closed for good by that.
// decision is the Decision of any of them.
func (c *RuleChange) Decide(ctx context.Context, decision string) (err error) {
	defer c.s.done(ctx, time.Now(), &err, "decide on the rule")
	decision = cmp.Or(decision, c.mark.command)
	if c.to.Store == "" {
		return c.replace(ctx, c.leftOut(decision))
	}
	if c.IsRecordedBy(decision) { // which a decision would hide from the next command, if this one is killed
		return nil
	}
	next := c.mark
	next.state, next.decision, next.next, next.nextName = decided, decision, c.to.Rule, nameSum(c.to.Store)
	err = c.replace(ctx, next)
	if err != nil {
		c.tried = next
	}
	return err
}

// HasDecided reports whether the command has decided here, or an earlier one with its rule.
func (c *RuleChange) HasDecided() bool { return c.mark.state == decided }

// leftOut is the record of a database that the rule leaves out.
func (c *RuleChange) leftOut(decision string) ruleRecord {
	before := c.found.base()
	if before.state == leftOut && before.decision == decision {
		return before
	}
	r := ruleRecord{state: leftOut, binding: c.to, decision: decision}
	r.binding.Store = cmp.Or(before.binding.Store, emptyElement)
	if before.state == recorded {
		r.was = before.binding.Rule
	}
	return r
}

// Accept ends the change after Decide, and records the rule. It is the operator's word that the tags
// were moved to where the rule expects them. A binding without a rule is recorded as well: a node
// that runs with the old rule would take a record that is gone for one that is still to be made.
func (c *RuleChange) Accept(ctx context.Context) (err error) {
	defer c.s.done(ctx, time.Now(), &err, "accept rule")
	if c.to.Store == "" {
		return nil
	}
	return c.replace(ctx, ruleRecord{state: recorded, binding: c.to, decision: c.mark.decision})
}

// Undo ends the change before Accept, and puts back the rule that the database had. Error:
// leaf.ErrConflict if an earlier command had decided on the rule, so that still no node binds the
// database.
func (c *RuleChange) Undo(ctx context.Context) (err error) {
	defer c.s.done(ctx, time.Now(), &err, "put the rule back")
	before := c.found
	if before.state == begun {
		before = before.base()
	}
	err = c.replace(ctx, before)
	if errors.Is(err, errChanged) && c.tried.state != noRecord {
		mark := c.mark
		c.mark = c.tried
		if err = c.replace(ctx, before); err != nil {
			c.mark = mark
		}
	}
	if err != nil {
		return err
	}
	if before.state == decided {
		return fmt.Errorf("%w: another leaf schema apply --accept-rule has begun to record the same rule, and was interrupted. No node starts until the command ends well", leaf.ErrConflict)
	}
	return nil
}

// replace records next in place of the mark.
func (c *RuleChange) replace(ctx context.Context, next ruleRecord) error {
	if err := c.s.replaceBinding(ctx, c.mark.record(), next.record()); err != nil {
		return err
	}
	c.mark, c.tried = next, ruleRecord{}
	return nil
}

var errChanged = fmt.Errorf("%w: another command or node is recording its rule; when it has ended, try again", leaf.ErrConflict)

// replaceBinding records to in place of from; nil is no binding. Error: leaf.ErrConflict if the
// database has another one meanwhile.
func (s *Store) replaceBinding(ctx context.Context, from, to *stored) error {
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

func equal(a, b *stored) bool { return a == b || a != nil && b != nil && *a == *b }
