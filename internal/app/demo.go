package app

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/driver/datadir"
	"github.com/leaf-idgen/leaf/segment"
	"github.com/leaf-idgen/leaf/segment/fence"
)

// The tag with which a new embedded database starts, the same as in the Java
// server's script.
const (
	demoTag         = "leaf-segment-test"
	demoStep        = 2000
	demoDescription = "Demo tag, made at the first start; delete it as you like"
)

// prepareEmbedded creates the tables of the embedded database and, if no segment mode has
// used it yet, the demo tag. The demo tag does not come back after it was deleted: its
// numbers would begin again. The file may have been deleted while the node's fence was kept,
// so the tag starts where the fence allows it.
func prepareEmbedded(dbs *databases, dir *datadir.Dir, mark func(tag string) fence.Mark, timeout time.Duration) error {
	if !dbs.embedded {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	store := dbs.stores[0]
	fresh, err := isFresh(ctx, store, dir)
	if err == nil {
		err = store.Bind(ctx, dbs.router.Binding(0))
	}
	if _, other := errors.AsType[*segment.ClusterError](err); other {
		err = fmt.Errorf("%w: %w. %s is not the file that this node had: it was exchanged, or lost and made again by snowflake mode alone. Put that one back, never a backup. "+
			"If it is lost for good, move the present file with its -wal and -shm to another folder, start the node again, and do what it says then", leaf.ErrConflict, err, dbs.file)
	}
	if err != nil {
		return fmt.Errorf("prepare the embedded database: %w", err)
	}
	m := mark(demoTag)
	if !fresh || m.Latched {
		return nil
	}
	err = store.Create(ctx, segment.NewRow{Tag: demoTag, Start: max(1, m.High), Step: demoStep, Description: demoDescription})
	if err != nil && !errors.Is(err, leaf.ErrConflict) {
		return fmt.Errorf("create the demo tag: %w", err)
	}
	return nil
}

// isFresh reports whether no segment mode has used the embedded database yet: it has no
// table of tags, or a command about worker IDs made it, and no tag was made or deleted. One that is
// made again in the place of a lost one is not fresh.
func isFresh(ctx context.Context, store store, dir *datadir.Dir) (bool, error) {
	known, err := rememberedClusters(dir)
	if _, used := known[embeddedName]; err != nil || used && store.MissingFile() != "" {
		return false, err
	}
	rows, err := store.RowsAfter(ctx, "", 1)
	switch {
	case errors.Is(err, segment.ErrSchema):
		return true, nil
	case err != nil || len(rows) > 0:
		return false, err
	}
	if used, err := hasNo(dir, unusedFile); used || err != nil {
		return false, err
	}
	answers, err := store.Answers(ctx, demoTag)
	if errors.Is(err, segment.ErrSchema) { // no command deletes a tag without that table
		return true, nil
	}
	return !slices.ContainsFunc(answers, func(a segment.Answer) bool { return a.Node == segment.DeletedRow }), err
}
