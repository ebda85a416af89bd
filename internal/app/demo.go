package app

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"github.com/leaf-idgen/leaf"
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

// prepareEmbedded creates the tables of the embedded database and, if its file did
// not exist, the demo tag. The demo tag does not come back after it was deleted: its
// numbers would begin again. The file may have been deleted while the node's fence was kept, so
// the tag starts where the fence allows it.
func prepareEmbedded(dbs *databases, mark func(tag string) fence.Mark, timeout time.Duration) error {
	if !dbs.embedded {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	store := dbs.stores[0]
	info, statErr := os.Stat(dbs.file)
	fresh := errors.Is(statErr, fs.ErrNotExist) || statErr == nil && info.Size() == 0
	if err := store.Bind(ctx, dbs.router.Binding(0)); err != nil {
		return fmt.Errorf("prepare the embedded database: %w", err)
	}
	m := mark(demoTag)
	if !fresh || m.Latched {
		return nil
	}
	err := store.Create(ctx, segment.NewRow{Tag: demoTag, Start: max(1, m.High), Step: demoStep, Description: demoDescription})
	if err != nil && !errors.Is(err, leaf.ErrConflict) {
		return fmt.Errorf("create the demo tag: %w", err)
	}
	return nil
}
