package app

import (
	"io"
	"log/slog"
	"net/url"
	"path"
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
	etcdFence   = "/leaf/fence/"
)

// openCoordinator returns the registry in ZooKeeper or etcd.
func openCoordinator(c SnowflakeConfig, log *slog.Logger) (worker.Registry, error) {
	if c.Registry == registryEtcd {
		cfg := etcdConfig(c.Addresses, etcdWorkers+c.Name)
		cfg.Lease = c.Lease
		records, err := etcd.NewRecords(cfg)
		if err != nil {
			return nil, err
		}
		return worker.NewPool(records), nil
	}
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

// fenceURL is a value of segment.cluster-fence, taken apart.
type fenceURL struct {
	scheme  string // zookeeper, etcd or etcds
	servers []string
	folder  string // "" or a path that begins with a slash
	name    string
	user    *url.Userinfo
}

// fenceDegrade is the word of segment.fence-policy for going on without the fence.
const fenceDegrade = "degrade"

const fenceLimit = "must be zookeeper://HOST:PORT,HOST:PORT/NAME or etcd://HOST:PORT,HOST:PORT/NAME (etcds:// with TLS)"

// parseFenceURL reads SCHEME://[USER:PASSWORD@]HOST:PORT,…/[FOLDER/]NAME. Package url
// does not know lists of hosts.
func parseFenceURL(text string) (f fenceURL, err error) {
	wrong := &ConfigError{Key: "segment.cluster-fence", Value: redact(text), Limit: fenceLimit}
	scheme, rest, found := strings.Cut(text, "://")
	hosts, place, named := strings.Cut(rest, "/")
	if !found || !named || strings.ContainsAny(place, "?#") {
		return f, wrong
	}
	f.scheme = scheme
	if at := strings.LastIndexByte(hosts, '@'); at >= 0 {
		u, err := url.Parse(scheme + "://" + hosts[:at] + "@host")
		if err != nil || scheme == "zookeeper" {
			return f, wrong
		}
		f.user, hosts = u.User, hosts[at+1:]
	}
	for host := range strings.SplitSeq(hosts, ",") {
		if !isEndpoint(host, false) {
			return f, wrong
		}
		f.servers = append(f.servers, host)
	}
	f.folder, f.name = path.Split(place)
	if f.folder = strings.TrimSuffix(f.folder, "/"); f.folder != "" {
		f.folder = "/" + f.folder
	}
	switch {
	case !pathName.MatchString(f.name) || f.name == "." || f.name == "..":
		return f, wrong
	case scheme == "zookeeper":
		return f, nil
	case (scheme == "etcd" || scheme == "etcds") && f.folder == "":
		return f, nil
	}
	return f, wrong
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
	f, err := parseFenceURL(cfg.ClusterFence)
	if err != nil {
		return nil, err
	}
	if f.scheme == "zookeeper" {
		return zookeeper.NewFence(zookeeper.Config{Servers: f.servers, Chroot: f.folder, Name: f.name, Logger: log})
	}
	transport := "http"
	if f.scheme == "etcds" {
		transport = "https"
	}
	var endpoints []string
	for _, host := range f.servers {
		u := url.URL{Scheme: transport, Host: host, User: f.user}
		endpoints = append(endpoints, u.String())
	}
	c := etcdConfig(endpoints, etcdFence+f.name)
	c.DialTimeout = connect
	return etcd.NewFence(c)
}
