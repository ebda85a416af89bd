package app

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/leaf-idgen/leaf/internal/config"

	"github.com/leaf-idgen/leaf/driver/datadir"
	"github.com/leaf-idgen/leaf/internal/manage"
	"github.com/leaf-idgen/leaf/internal/server/admin"
)

// Registry opens the registry of worker IDs. The data directory is locked only if the registry is in it, so that a running
// node refuses the command. Else it is read, if there is one: another registry, or the store of another cluster, than the one
// that it has used is not the one that the command is meant for (rule V).
func Registry(ctx context.Context, cfg config.Config, opts Options, noNode error) (site any, done func() error, err error) {
	static := cfg.Snowflake.Enable && cfg.Snowflake.Registry == config.RegistryStatic
	switch {
	case static && noNode == nil:
		return nil, nil, &config.Error{Key: "snowflake.registry", Value: config.RegistryStatic, Limit: "is a number in a node's configuration, and in no registry that a command could open; ask the running node with --data-dir alone"}
	case static:
		return nil, nil, fmt.Errorf("%w; only the node itself knows its static worker ID", noNode)
	case !cfg.Snowflake.Enable:
		return nil, nil, errNoSnowflake
	}
	var undo closers
	defer func() {
		if err != nil {
			err = errors.Join(err, undo.close())
		}
	}()
	var dir *datadir.Dir // of the registry; nil: it is not in one
	if cfg.Snowflake.UsesStores() && len(cfg.Stores) == 0 {
		if opts.NoEmbedded != nil {
			return nil, nil, opts.NoEmbedded
		}
		if dir, err = openDirForCommand(cfg.DataDir); err != nil {
			return nil, nil, err
		}
		undo.add(dir.Close)
	}
	// The audit log lies in the databases, and the registry mostly does.
	dbs := &databases{}
	if dir == nil && len(cfg.Stores) > 0 {
		if dbs, err = openDatabases(cfg, opts.logger(), nil); err != nil {
			return nil, nil, err
		}
		undo.add(dbs.Close)
		if err = dbs.recall(unlocked(cfg.DataDir)); err != nil {
			return nil, nil, manage.StoreError(err)
		}
	}
	reg, err := openRegistry(cfg, dbs, opts.logger())
	if err != nil {
		return nil, nil, err
	}
	undo.add(reg.Close)
	if dir != nil {
		if err = prepareRegistry(ctx, dir, reg.records); err != nil {
			return nil, nil, err
		}
		if dbs, err = openDatabases(cfg, opts.logger(), nil); err != nil {
			return nil, nil, err
		}
		undo.add(dbs.Close)
	}
	if err = reg.knownToCommand(unlocked(cfg.DataDir), opts.logger()); err != nil {
		return nil, nil, err
	}
	w := reg.manage(cfg.Snowflake, func() int64 { return -1 })
	w.Audit = commandAuditLog(cfg, dbs, opts)
	return w, undo.close, nil
}

// OpenNode returns the Backend of the node that runs in cfg's data directory, or
// admin.ErrNoNode. The caller calls done at the end.
func OpenNode(ctx context.Context, cfg config.Config) (b manage.Backend, done func() error, err error) {
	dir, err := filepath.Abs(cfg.DataDir)
	if err != nil {
		return b, nil, err
	}
	client := admin.NewClient(dir)
	if _, err = manage.Ask(ctx, client, manage.GetInfo{}); err != nil {
		return b, nil, errors.Join(err, client.Close())
	}
	return client, client.Close, nil
}
