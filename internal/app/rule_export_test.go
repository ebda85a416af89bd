package app

import (
	"context"
	"errors"

	"github.com/leaf-idgen/leaf/internal/config"
)

// InterruptRuleChange is ApplySchema with a change, up to where the rule is recorded in the first
// database.
func InterruptRuleChange(ctx context.Context, c config.Config, change RuleChange) (err error) {
	o, err := newOffline(c, Options{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, o.close()) }()
	for i := range o.dbs.stores {
		if _, err := o.applyTo(ctx, i); err != nil {
			return err
		}
	}
	r, err := o.newRuleChange(&change)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.close()) }()
	if err := r.begin(ctx); err != nil {
		return err
	}
	if err := r.decide(ctx); err != nil {
		return err
	}
	return r.changes[0].Accept(ctx, o.dbs.router.Binding(0))
}
