package app

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
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
		dbs, err := openDatabases(cfg, slog.New(slog.DiscardHandler))
		if err != nil {
			return "", err
		}
		dialect = dbs.stores[0].Dialect()
		if err := dbs.Close(); err != nil {
			return "", err
		}
	}
	return sqldb.Schema(dialect)
}

// ApplySchema creates the missing tables in every configured database, records the
// tag rule, and returns what it did. With acceptRule it overwrites the rule of
// another division of tags, which is the operator's word that all nodes were stopped and
// the rows were moved then. It is leaf.ErrConflict if a row shows that this is not so.
func ApplySchema(ctx context.Context, cfg config.Config, opts Options, acceptRule bool) (report []string, err error) {
	if opts.Logger == nil {
		opts.Logger = slog.New(slog.DiscardHandler)
	}
	o, err := newOffline(cfg, opts)
	if inUse, ok := errors.AsType[*inUseError](err); ok {
		// Only the embedded database needs the lock, and no node is asked for its schema.
		return nil, fmt.Errorf("%w: data directory %s is in use by %s. The embedded database there needs no leaf schema apply: a node makes the tables and columns that are missing at each start. "+
			"For another database, name it with --store URL", leaf.ErrConflict, inUse.locked.Path, inUse.locked.Holder())
	}
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, o.close()) }()
	if acceptRule {
		if err := o.checkMoved(ctx); err != nil {
			return nil, err
		}
	}
	for i, s := range o.dbs.stores {
		ctx, cancel := context.WithTimeout(ctx, schemaTimeout)
		lines, err := s.ApplySchema(ctx)
		if err == nil && acceptRule {
			err = s.AcceptRule(ctx, o.dbs.router.Binding(i))
			lines = append(lines, "tag rule recorded")
		}
		if err == nil {
			err = s.Bind(ctx, o.dbs.router.Binding(i))
		}
		cancel()
		for _, line := range lines {
			report = append(report, o.dbs.addresses()[i]+": "+line)
		}
		if errors.Is(err, segment.ErrRule) {
			return report, fmt.Errorf("%w: %w; if the configured rule is right, stop all nodes, then move the rows to where it expects them (a row that was moved earlier needs at least the max_id that its old row has now), then add --accept-rule", leaf.ErrConflict, err)
		}
		if err != nil {
			return report, manage.StoreError(err)
		}
	}
	return report, nil
}

// checkPosted refuses a rule that sends a tag to a row below what nodes have posted of a
// regress or a repair in another database. That row may lie below it, too: a database that
// lost commits has a row that says too little.
func (o *offline) checkPosted(ctx context.Context, rows []map[string]int64) error {
	for i, s := range o.dbs.stores {
		ctx, cancel := context.WithTimeout(ctx, schemaTimeout)
		notices, err := s.Notices(ctx)
		cancel()
		if errors.Is(err, segment.ErrSchema) || errors.Is(err, segment.ErrDenied) { // the nodes could not post, either
			continue
		}
		if err != nil {
			return manage.StoreError(err)
		}
		for _, n := range notices {
			to, known := o.dbs.router.Route(n.Tag), max(n.Regress, n.Repaired)
			if to < 0 || to == i {
				continue
			}
			at, moved := rows[to][n.Tag]
			if !moved || at >= known {
				continue
			}
			if known > segment.MaxMaxID { // the text says that no node wrote it
				return segment.NewRow{Tag: n.Tag, Start: at}.CheckStart(n, nil)
			}
			return fmt.Errorf("%w: numbers of tag %q up to %d are in use from store %q, whose nodes have posted that after a loss of commits, and its row has max_id=%d in store %q, where the new rule expects it. "+
				"Stop all nodes, set max_id in store %q to %d or more, and run the command again", leaf.ErrConflict, n.Tag, known, o.dbs.name(i), at, o.dbs.name(to), o.dbs.name(to), known)
		}
	}
	return nil
}

// checkMoved refuses a rule that sends a tag to a row below the tag's row in another
// database: nodes took ranges there after the row was moved, and the new rule would hand
// them out again.
func (o *offline) checkMoved(ctx context.Context) error {
	rows := make([]map[string]int64, len(o.dbs.stores)) // max_id by tag
	for i, s := range o.dbs.stores {
		ctx, cancel := context.WithTimeout(ctx, schemaTimeout)
		all, err := s.Rows(ctx)
		cancel()
		if err != nil && !errors.Is(err, segment.ErrSchema) { // without a table there are no rows
			return manage.StoreError(err)
		}
		rows[i] = map[string]int64{}
		for _, row := range all {
			rows[i][row.Tag] = row.MaxID
		}
	}
	if err := o.checkPosted(ctx, rows); err != nil {
		return err
	}
	for i, left := range rows {
		for _, tag := range slices.Sorted(maps.Keys(left)) {
			to := o.dbs.router.Route(tag)
			if to < 0 {
				continue
			}
			if at, moved := rows[to][tag]; moved && at < left[tag] {
				return fmt.Errorf("%w: tag %q has max_id=%d in store %q, but max_id=%d in store %q, where the new rule expects it: nodes took ranges after the row was moved, and the new rule would repeat them. "+
					"Stop all nodes, set max_id in store %q to the larger max_id or more, and run the command again", leaf.ErrConflict, tag, left[tag], o.dbs.name(i), at, o.dbs.name(to), o.dbs.name(to))
			}
		}
	}
	return nil
}
