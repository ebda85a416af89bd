package app

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/leaf-idgen/leaf/internal/config"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/driver/sqldb"
	"github.com/leaf-idgen/leaf/internal/manage"
	"github.com/leaf-idgen/leaf/segment"
)

// schemaTimeout bounds the statements for one database.
const schemaTimeout = 30 * time.Second

// Schema returns the statements that create the tables. An empty dialect means
// that of the configured store.
func Schema(cfg config.Config, dialect string) (string, error) {
	if dialect == "" {
		dbs, err := openDatabases(cfg, slog.New(slog.DiscardHandler), nil)
		if err != nil {
			return "", err
		}
		first := dbs.stores[0]
		if err := dbs.Close(); err != nil {
			return "", err
		}
		if dialect = first.Dialect(); dialect == etcdDialect {
			return "", notInEtcd("a schema", first.Redacted())
		}
	}
	return sqldb.Schema(dialect)
}

// ApplySchema creates the missing tables in every configured database, records the
// tag rule where none is recorded, and returns what it did. With a change, which may be nil, it overwrites the rule of
// another division of tags. It is leaf.ErrConflict if numbers could repeat then.
func ApplySchema(ctx context.Context, cfg config.Config, opts Options, change *RuleChange) (report []string, err error) {
	opts.makeLost = true                                      // that is what the error of a lost file asks for
	opts.withoutFence = change == nil || len(change.Lost) > 0 // a fence that is refused is rebuilt from the tables of all databases
	opts.stopped = change != nil
	o, err := newOffline(cfg, opts)
	if inUse, ok := errors.AsType[*inUseError](err); ok {
		// Only the embedded database and another rule need the lock, and no node is asked for its schema.
		do := "The embedded database there needs no leaf schema apply: a node makes the tables and columns that are missing at each start. For another database, name it with --store URL"
		if change != nil {
			do = "Another tag rule needs all nodes stopped, and Java servers for good: stop them, and repeat the command. If the node there is of another cluster, name as --data-dir that of a node of this one"
		}
		return nil, fmt.Errorf("%w: data directory %s is in use by %s. %s", leaf.ErrConflict, inUse.locked.Path, inUse.locked.Holder(), do)
	}
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, o.close()) }()
	var rule *ruleChange
	if change != nil {
		if rule, err = o.newRuleChange(change); err != nil {
			return nil, err
		}
		defer func() { err = errors.Join(err, rule.close()) }()
		if err := rule.check(ctx); err != nil {
			return nil, err
		}
	}
	for i := range o.dbs.stores {
		lines, err := o.applyTo(ctx, i)
		report = append(report, lines...)
		if err != nil {
			return report, err
		}
	}
	if rule != nil {
		err := rule.accept(ctx)
		o.AuditLog().Record(ctx, rule.change(), err)
		if err != nil {
			return report, err
		}
		for _, address := range o.dbs.addresses() {
			report = append(report, address+": tag rule recorded")
		}
		for _, s := range rule.stores[len(o.dbs.stores):] {
			report = append(report, s.Redacted()+": closed for the rule before")
		}
		for _, name := range change.Lost {
			report = append(report, fmt.Sprintf("%s: nothing is known of the tags of a database that is lost. Before the nodes start, make each of them with leaf tag create TAG --start NUMBER, or, if it has a row from an earlier time, run leaf tag set TAG --max-id NUMBER. "+
				"For a sequence, run leaf sequence create NAME --start NUMBER if rows are missing, and leaf sequence repair NAME --all --above NUMBER if rows are there. "+
				"NUMBER is what docs/GUARANTEES.md#repair says for --above; of a tag in several databases, what docs/MASTERS.md says", name))
		}
	}
	return report, o.recordRule(ctx)
}

// recordRule records the configured rule where none is recorded, if it is nowhere another one: a
// node with the configured rule would take ranges from a database that has it, while another
// one that refuses it does not answer. Rows beside which no rule is recorded may be copies, as
// those of a database that a new rule adds: they are compared in the same way.
func (o *offline) recordRule(ctx context.Context) error {
	var first []string
	for i, s := range o.dbs.stores {
		err := within(ctx, func(ctx context.Context) error { return s.Verify(ctx, o.dbs.router.Binding(i)) })
		if errors.Is(err, sqldb.ErrUnbound) {
			first = append(first, o.dbs.name(i))
			continue
		}
		if errors.Is(err, segment.ErrRule) {
			return fmt.Errorf("%w; if the configured rule is right, %s", err, segment.MoveRows("add --accept-rule"))
		}
		if err != nil {
			return err
		}
	}
	if 0 < len(first) && len(first) < len(o.dbs.stores) {
		return fmt.Errorf("%w: no tag rule is recorded in store %s, although the rule is recorded in the others: it is another database than the rule had, perhaps a copy, or it has lost its record. "+
			"Correct its URL, or, if only its table leaf_meta is lost, restore that from a backup, or, if no node can ever reach the database that the rule had, or there is no such backup, stop all nodes, and add --accept-rule --lost %s, and as --data-dir that of one of these nodes, which knows the ID of that database: with another ID the nodes refuse it",
			leaf.ErrConflict, strings.Join(first, ", "), strings.Join(first, " --lost "))
	}
	if len(first) > 0 {
		rule, err := o.newRuleChange(&RuleChange{})
		if err != nil {
			return err
		}
		rule.first = true
		if err := rule.check(ctx); err != nil {
			return err
		}
		if err := rule.accept(ctx); err != nil {
			return err
		}
	}
	for i, s := range o.dbs.stores {
		if err := within(ctx, func(ctx context.Context) error { return s.Bind(ctx, o.dbs.router.Binding(i)) }); err != nil {
			return err
		}
	}
	return nil
}

// applyTo creates the missing tables of the database i.
func (o *offline) applyTo(ctx context.Context, i int) (report []string, err error) {
	ctx, cancel := context.WithTimeout(ctx, schemaTimeout)
	defer cancel()
	lines, err := o.dbs.stores[i].ApplySchema(ctx)
	for _, line := range lines {
		report = append(report, o.dbs.addresses()[i]+": "+line)
	}
	return report, manage.StoreError(err)
}
