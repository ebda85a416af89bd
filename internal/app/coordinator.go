package app

import (
	"io"
	"log/slog"
	"net/url"
	"strings"
	"time"

	"github.com/leaf-idgen/leaf/internal/config"

	"github.com/leaf-idgen/leaf/driver/etcd"
	"github.com/leaf-idgen/leaf/driver/zookeeper"
	"github.com/leaf-idgen/leaf/segment/fence"
	"github.com/leaf-idgen/leaf/worker"
)

// openZooKeeper opens the registry in ZooKeeper.
func (r *registry) openZooKeeper(c config.Snowflake, log *slog.Logger) error {
	servers, chroot, err := zookeeper.ParseServers(strings.Join(c.Addresses, ","))
	if err != nil {
		return err
	}
	cfg := zookeeper.Config{
		Servers: servers, Chroot: chroot, Name: c.Name, SessionTimeout: c.Lease, Logger: log,
	}
	if c.Registry == config.RegistryZooKeeper {
		o, err := zookeeper.NewOriginal(cfg)
		if err == nil {
			r.Registry, r.ids = o, o
		}
		return err
	}
	records, err := zookeeper.NewRecycle(cfg)
	if err == nil {
		r.Registry, r.ids = worker.NewPool(records), records
	}
	return err
}

// etcdRegistry returns where the registry is in etcd.
func etcdRegistry(c config.Snowflake) etcd.Config {
	cfg := etcdConfig(c.Addresses, config.EtcdWorkers+"/"+c.Name)
	cfg.Lease = c.Lease
	return cfg
}

// etcdConfig reads HOST:PORT, or http(s)://user:password@HOST:PORT.
func etcdConfig(addresses []string, prefix string) etcd.Config {
	cfg := etcd.Config{Prefix: prefix}
	for _, a := range addresses {
		if u, err := url.Parse(a); err == nil && u.User != nil {
			cfg.Username = u.User.Username()
			cfg.Password, _ = u.User.Password()
			u.User = nil
			a = u.String()
		}
		cfg.Endpoints = append(cfg.Endpoints, a)
	}
	return cfg
}

// fenceDegrade is the word of segment.fence-policy for going on without the fence.
const fenceDegrade = "degrade"

// closableFence is what both drivers have beyond the interface of the engine.
type closableFence interface {
	fence.Cluster
	io.Closer
}

// openFence returns the cluster fence, nil if none is configured. It connects at the
// first call.
func openFence(cfg config.Segment, connect time.Duration, log *slog.Logger) (closableFence, error) {
	if cfg.ClusterFence == "" {
		return nil, nil //nolint:nilnil // no fence is a valid configuration
	}
	c, err := config.ParseCoordinator(config.FenceKey, cfg.ClusterFence, config.EtcdFence)
	switch {
	case err != nil:
		return nil, err
	case c.ZooKeeper != nil:
		c.ZooKeeper.Logger = log
		return zookeeper.NewFence(*c.ZooKeeper)
	}
	c.Etcd.DialTimeout = connect
	return etcd.NewFence(*c.Etcd)
}
