package app

import (
	"io"
	"log/slog"
	"net/url"
	"strings"
	"time"

	"github.com/leaf-idgen/leaf/driver/etcd"
	"github.com/leaf-idgen/leaf/driver/zookeeper"
	"github.com/leaf-idgen/leaf/segment"
	"github.com/leaf-idgen/leaf/snowflake"
	"github.com/leaf-idgen/leaf/worker"
)

// Where our keys lie in etcd. A registry and a fence of one name do not meet.
const (
	etcdWorkers = "/leaf/worker/"
	etcdFence   = "/leaf/fence"
	etcdNodes   = "/leaf/node"
)

// openZooKeeper returns the registry in ZooKeeper.
func openZooKeeper(c SnowflakeConfig, log *slog.Logger) (worker.Registry, error) {
	servers, chroot, err := zookeeper.ParseServers(strings.Join(c.Addresses, ","))
	if err != nil {
		return nil, err
	}
	cfg := zookeeper.Config{
		Servers: servers, Chroot: chroot, Name: c.Name, SessionTimeout: c.Lease,
		JavaFingerprint: snowflake.Leaf().Fingerprint(), Logger: log,
	}
	if c.Registry == registryZooKeeper {
		return zookeeper.NewOriginal(cfg)
	}
	records, err := zookeeper.NewRecycle(cfg)
	if err != nil {
		return nil, err
	}
	return worker.NewPool(records), nil
}

// etcd returns where the registry is in etcd.
func (c SnowflakeConfig) etcd() etcd.Config {
	cfg := etcdConfig(c.Addresses, etcdWorkers+c.Name)
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

const fenceKey = "segment.cluster-fence"

// fenceDegrade is the word of segment.fence-policy for going on without the fence.
const fenceDegrade = "degrade"

// coordinatorLimit is what a URL of a coordinator must be.
const coordinatorLimit = "must be " + zookeeper.URLForm + " or " + etcd.URLForm

// coordinator is a URL of ZooKeeper or etcd, taken apart: one of the two is there.
type coordinator struct {
	zookeeper *zookeeper.Config
	etcd      *etcd.Config
}

// parseCoordinator reads the value of key, for keys that lie under folder in etcd.
func parseCoordinator(key, text, folder string) (c coordinator, err error) {
	if strings.HasPrefix(text, "zookeeper:") {
		var cfg zookeeper.Config
		cfg, err = zookeeper.ParseURL(text)
		c.zookeeper = &cfg
	} else {
		var cfg etcd.Config
		cfg, err = etcd.ParseURL(text, folder)
		c.etcd = &cfg
	}
	if err != nil { // it does not know the key, and shows no value
		return coordinator{}, &ConfigError{Key: key, Value: redact(text), Limit: coordinatorLimit}
	}
	return c, nil
}

// closableFence is what both drivers have beyond the interface of the engine.
type closableFence interface {
	segment.ClusterFence
	io.Closer
}

// openFence returns the cluster fence, nil if none is configured. It connects at the
// first call.
func openFence(cfg SegmentConfig, connect time.Duration, log *slog.Logger) (closableFence, error) {
	if cfg.ClusterFence == "" {
		return nil, nil //nolint:nilnil // no fence is a valid configuration
	}
	c, err := parseCoordinator(fenceKey, cfg.ClusterFence, etcdFence)
	switch {
	case err != nil:
		return nil, err
	case c.zookeeper != nil:
		c.zookeeper.Logger = log
		return zookeeper.NewFence(*c.zookeeper)
	}
	c.etcd.DialTimeout = connect
	return etcd.NewFence(*c.etcd)
}
