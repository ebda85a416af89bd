package app

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"slices"

	"github.com/leaf-idgen/leaf/internal/config"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/driver/datadir"
	"github.com/leaf-idgen/leaf/internal/manage"
	"github.com/leaf-idgen/leaf/segment"
	"github.com/leaf-idgen/leaf/segment/fence"
)

// RebuildFence makes the fence files of cfg's data directory anew, with every tag of the
// databases latched, and returns the tags. It is leaf.ErrConflict if the files are whole,
// if a node runs there, if there is no such directory, if cfg names other stores than the node has,
// or if the row of a tag cannot be read, because it is then not known where its numbers end;
// leaf.ErrNotReady if a database does not answer, because a tag that is not latched could repeat IDs.
func RebuildFence(ctx context.Context, cfg config.Config) (tags []string, err error) {
	if _, err := os.Stat(cfg.DataDir); err != nil {
		return nil, fmt.Errorf("%w: data directory: %w; name the folder of the node whose start says to run this command with --data-dir", leaf.ErrConflict, err)
	}
	dir, err := openDirSoon(cfg.DataDir)
	if locked, ok := errors.AsType[*datadir.LockedError](err); ok {
		return nil, fmt.Errorf("%w: data directory %s is in use by %s: a node that runs has its fence. Stop it, start it again, and rebuild the fence only if that start says so", leaf.ErrConflict, locked.Path, locked.Holder())
	}
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, dir.Close()) }()
	dbs, err := openDatabases(cfg, slog.New(slog.DiscardHandler), nil)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, dbs.Close()) }()
	if dbs.embedded {
		if err := checkEmbedded(dir); err != nil {
			return nil, err
		}
	}
	if err := dbs.recall(dir); err != nil {
		return nil, err
	}
	if err := dbs.checkAll(dir); err != nil { // before the missing tables of that file, whose cure is of another directory
		return nil, err
	}
	for i, s := range dbs.stores { // a fence with the tags of other nodes, or of one of two stores, guards none of the others
		err := within(ctx, func(ctx context.Context) error { return s.Verify(ctx, dbs.router.Binding(i)) })
		if errors.Is(err, segment.ErrRule) {
			err = fmt.Errorf("%w; nothing was written: give this command the stores and tag rules of the node", err)
		}
		if err != nil {
			return nil, fmt.Errorf("store %q: %w", dbs.name(i), err)
		}
	}
	at := map[string]int64{}
	catalog := dbs.catalog(0, nil)
	for i, s := range dbs.stores {
		rows, err := allRows(ctx, s)
		if err != nil {
			return nil, err
		}
		for _, row := range rows {
			if !catalog.Holds(i, row.Tag) {
				continue
			}
			if err := manage.Readable(dbs.name(i), row); err != nil {
				return nil, err
			}
			tags = append(tags, row.Tag)
			at[row.Tag] = row.MaxID
		}
		if err := boardEnds(ctx, s, dir.NodeID(), at); err != nil {
			return nil, manage.StoreError(err)
		}
	}
	// A row that the rule sends to no database, as one by which a tag was divided before: nothing is loaded from it, and no command
	// would release it. A change of the rule compares what the board knows of it.
	maps.DeleteFunc(at, func(tag string, _ int64) bool { return dbs.router.Route(tag) < 0 })
	slices.Sort(tags)
	if err := fence.Rebuild(dir, dir.NodeID(), at); err != nil {
		return nil, fmt.Errorf("%w: %w", leaf.ErrConflict, err)
	}
	return tags, nil
}

// boardEnds raises the numbers of tags to what the board knows: where the last repair moved the
// row, and where nodes said that their ranges end. The node may have said so, too, and does not
// know it any more, also of a tag without a row: the answer that it gives to the next question takes the
// place of what it said, unless a command has deleted the row, whose end is kept. It leaves out what no
// node wrote: the tag could not be repaired.
func boardEnds(ctx context.Context, s store, node string, at map[string]int64) error {
	notices, err := s.Notices(ctx)
	if errors.Is(err, segment.ErrSchema) && !errors.Is(err, segment.ErrDenied) {
		return nil
	}
	if err != nil {
		return err
	}
	answers, err := s.AllAnswers(ctx)
	if err != nil {
		return err
	}
	kept := map[string]int64{}
	for _, x := range answers {
		if x.Node == segment.DeletedRow {
			kept[x.Tag] = x.High
		}
	}
	for _, x := range answers {
		end, has := at[x.Tag]
		if forgotten := x.Node == node && x.High > kept[x.Tag]; (has || forgotten) && x.High <= segment.MaxMaxID {
			at[x.Tag] = max(end, x.High)
		}
	}
	for _, n := range notices {
		if n.Check() == nil {
			at[n.Tag] = max(at[n.Tag], n.Repaired)
		}
	}
	return nil
}
