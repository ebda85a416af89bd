package app

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/leaf-idgen/leaf/internal/config"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/discovery"
	"github.com/leaf-idgen/leaf/driver/etcd"
	"github.com/leaf-idgen/leaf/driver/zookeeper"
	"github.com/leaf-idgen/leaf/internal/manage"
)

// directory is the directory of nodes that a configuration names.
type directory struct {
	discovery.Directory

	where string // its URL, without a password
}

// directoryTTL is how long clients are told of a node that is gone.
const directoryTTL = 10 * time.Second

// openDirectory opens the directory of nodes, nil if there is none. It does not connect.
func openDirectory(cfg config.Config, dbs *databases, log *slog.Logger) (*directory, error) {
	text := cfg.Node.Discovery
	switch text {
	case config.DiscoveryOff:
		return nil, nil //nolint:nilnil // no directory is a valid configuration
	case "", config.DiscoveryStore:
		return storeDirectory(cfg, dbs)
	}
	c, err := config.ParseCoordinator(config.DiscoveryKey, text, config.EtcdNodes)
	switch {
	case err != nil:
		return nil, err
	case c.ZooKeeper != nil:
		c.ZooKeeper.Logger, c.ZooKeeper.SessionTimeout = log, directoryTTL
		d, err := zookeeper.NewDirectory(*c.ZooKeeper)
		return openedDirectory(d, config.Redact(text), err)
	}
	c.Etcd.Logger, c.Etcd.DialTimeout = log, cfg.ConnectTimeout
	d, err := etcd.NewDirectory(*c.Etcd)
	return openedDirectory(d, config.Redact(text), err)
}

// storeDirectory is the one in the first database. Without being asked for, it is not in
// a file, which few clients could open.
func storeDirectory(cfg config.Config, dbs *databases) (*directory, error) {
	asked := cfg.Node.Discovery == config.DiscoveryStore
	switch {
	case len(dbs.stores) == 0 && asked:
		return nil, &config.Error{Key: config.DiscoveryKey, Value: config.DiscoveryStore, Limit: "needs a database, and no mode of this node uses one; name another place, or off"}
	case len(dbs.stores) == 0, !asked && dbs.stores[0].Dialect() == "sqlite":
		return nil, nil //nolint:nilnil // no directory is a valid configuration
	}
	d, err := dbs.stores[0].openDirectory()
	return openedDirectory(d, dbs.stores[0].Redacted(), err)
}

func openedDirectory(d discovery.Directory, where string, err error) (*directory, error) {
	if err != nil {
		return nil, err
	}
	return &directory{d, where}, nil
}

// noDirectory is the answer of commands about the nodes where there is no directory: why,
// and what to do. unpublished is why the node left itself out of one, nil if it did not.
func noDirectory(cfg config.Config, dbs *databases, unpublished error) error {
	why, place := "node.discovery is off", config.DiscoveryStore+", "
	switch {
	case unpublished != nil:
		return fmt.Errorf("%w: this node is in no directory of nodes: %s", leaf.ErrDisabled, unpublished.Error())
	case cfg.Node.Discovery == config.DiscoveryOff:
	case len(dbs.stores) == 0:
		why, place = "node.discovery is not set, and this node uses no database", ""
	default:
		why = "node.discovery is not set, and the database is a file, which is no directory unless it is asked for"
	}
	return fmt.Errorf("%w: there is no directory of nodes: %s; start the nodes with --node-discovery %setcd://HOST:PORT/NAME or zookeeper://HOST:PORT/NAME", leaf.ErrDisabled, why, place)
}

// unnamedDirectory is the answer without a node.
func unnamedDirectory(cfg config.Config) error {
	return fmt.Errorf("%w: no node is running in %s, and no directory of nodes is named; name the --data-dir of a running node, the --node-discovery of the nodes, or the --store that they share", leaf.ErrDisabled, cfg.DataDir)
}

// Directory opens the directory of nodes.
func Directory(_ context.Context, cfg config.Config, opts Options, noNode error) (site any, done func() error, err error) {
	log, direct := opts.logger(), noNode == nil
	if direct && cfg.Node.Discovery == "" && len(cfg.Stores) > 0 {
		cfg.Node.Discovery = config.DiscoveryStore // it is asked for, so it may be in a file
	}
	dbs := &databases{}
	if cfg.Node.Discovery == config.DiscoveryStore || cfg.Node.Discovery == "" && len(cfg.Stores) > 0 {
		if dbs, err = openDatabases(cfg, log, nil); err != nil {
			return nil, nil, err
		}
	}
	d, err := openDirectory(cfg, dbs, log)
	if err == nil && d == nil {
		err = unnamedDirectory(cfg)
		if direct || cfg.Node.Discovery == config.DiscoveryOff {
			err = noDirectory(cfg, dbs, nil)
		}
	}
	if err != nil {
		return nil, nil, errors.Join(err, dbs.Close())
	}
	return &manage.Directory{Opened: d.Directory, Where: d.where}, func() error { return errors.Join(d.Close(), dbs.Close()) }, nil
}
