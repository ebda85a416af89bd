package app

import (
	"context"
	"errors"

	"github.com/leaf-idgen/leaf/internal/config"
)

// RuleCommand is ApplySchema with a change, step by step.
type RuleCommand struct {
	o         *offline
	r         *ruleChange
	steps     []ruleStep
	refusable int // so many steps can be undone
	next      int

	// Dies is in how many of some databases it puts the rule back before it is killed; nil: in all.
	Dies func(databases int) int
}

// NewRuleCommand begins a command, which has not changed any database yet.
func NewRuleCommand(c config.Config, change RuleChange) (*RuleCommand, error) {
	o, err := newOffline(c, Options{})
	if err != nil {
		return nil, err
	}
	r, err := o.newRuleChange(&change)
	if err != nil {
		return nil, errors.Join(err, o.close())
	}
	refusable := r.refusable()
	return &RuleCommand{o: o, r: r, steps: append(refusable, r.final()...), refusable: len(refusable)}, nil
}

// Step goes on to the next step. After an error the command has ended.
func (c *RuleCommand) Step(ctx context.Context) (done bool, err error) {
	return c.stepped(ctx, c.steps[c.next](ctx))
}

// Fail is Step where a database does not answer, and nothing is done.
func (c *RuleCommand) Fail(ctx context.Context) (done bool, err error) {
	return c.stepped(ctx, errors.New("a database does not answer"))
}

func (c *RuleCommand) stepped(ctx context.Context, err error) (bool, error) {
	c.next++
	switch {
	case err == nil || c.next > c.refusable:
	case c.Dies != nil:
		err = errors.Join(err, c.UndoOnly(ctx, c.Dies(len(c.r.undoOrder()))))
	default:
		err = c.r.undo(ctx, err)
	}
	return err != nil || c.next == len(c.steps), err
}

// UndoOnly is a command that is refused, and killed when it has put the rule back in some databases.
func (c *RuleCommand) UndoOnly(ctx context.Context, databases int) error {
	return c.r.undoIn(ctx, c.r.undoOrder()[:databases], nil)
}

// Close is all that is left of a command that ended or was killed.
func (c *RuleCommand) Close() error { return errors.Join(c.r.close(), c.o.close()) }

// InterruptRuleChange is ApplySchema with a change, up to where the rule is recorded in the first
// database.
func InterruptRuleChange(ctx context.Context, c config.Config, change RuleChange) (err error) {
	o, err := newOffline(c, Options{})
	if err != nil {
		return err
	}
	for i := range o.dbs.stores {
		if _, err := o.applyTo(ctx, i); err != nil {
			return errors.Join(err, o.close())
		}
	}
	if err := o.close(); err != nil {
		return err
	}
	command, err := NewRuleCommand(c, change)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, command.Close()) }()
	decided := len(command.r.inOrder(command.r.decide, leftOut))
	for command.next <= command.refusable+decided {
		if _, err := command.Step(ctx); err != nil {
			return err
		}
	}
	return nil
}
