package app

import (
	"fmt"
	"log/slog"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/leaf-idgen/leaf/internal/config"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/driver/etcd"
	"github.com/leaf-idgen/leaf/driver/sqldb"
	"github.com/leaf-idgen/leaf/internal/manage"
	"github.com/leaf-idgen/leaf/internal/trace"
	"github.com/leaf-idgen/leaf/snowflake"
	"github.com/leaf-idgen/leaf/worker"
)

// registry is an opened registry of worker IDs, with what a node or a command needs to
// know of it. Nothing is connected until the first call.
type registry struct {
	worker.Registry
	tracer  *trace.Tracer  // of claims; nil: they have no spans
	records *sqldb.Records // nil: not in a database
	etcd    *etcd.Records  // nil: not in etcd
	ids     identified     // nil: it has no ID
	inStore bool           // as in knownRegistry
	plain   bool           // as in knownRegistry
	files   *files         // that the node rests on; nil in a command
	layout  snowflake.Layout
	workers config.Workers // of it and of the further layouts
	numbers leaf.Range     // that this node may have
	address string         // of this node
}

// namespace is what all nodes of the registry must agree on.
func (r *registry) namespace(c config.Snowflake) worker.Namespace {
	return worker.NewNamespace(c.Namespace, r.layout, c.Datacenter)
}

// openRegistry returns the registry that cfg names. It shares the database with dbs, those that
// the node has opened, and the caller closes it before them; without any it opens its own. A
// static number is the node's own: the registry of one exists only after identify.
func openRegistry(cfg config.Config, dbs *databases, log *slog.Logger) (_ *registry, err error) {
	c := cfg.Snowflake
	r := &registry{}
	if r.layout, err = config.ParseLayout(c.Layout); err != nil {
		return nil, err
	}
	if r.workers, err = c.Workers(); err != nil {
		return nil, err
	}
	switch c.Registry {
	case config.RegistryStatic:
	case config.RegistryAuto, config.RegistrySQL:
		err = r.openRecords(cfg, dbs, log)
	case config.RegistryEtcd:
		if r.etcd, err = etcd.NewRecords(etcdRegistry(c)); err == nil {
			r.Registry = worker.NewPool(r.etcd)
		}
	case config.RegistryZooKeeper, config.RegistryZooKeeperRecycle:
		err = r.openZooKeeper(c, log)
	default:
		err = fmt.Errorf("snowflake.registry=%s has no case in openRegistry", c.Registry)
	}
	r.inStore = c.UsesStores()
	r.plain = r.inStore && (cfg.Segment.Enable || len(cfg.Stores) == 0)
	switch {
	case r.records != nil:
		r.ids = r.records
	case r.etcd != nil:
		r.ids = r.etcd
	}
	return r, err
}

// identify finds out which numbers a node may have, the address of the node, whose HTTP server
// listens on httpPort, and the number of a static one, which may depend on the address.
func (r *registry) identify(c config.Snowflake, httpPort uint16, interfaces func() ([]Interface, error)) (err error) {
	if r.numbers, err = config.WorkerRange(c.WorkerRange, r.workers); err != nil {
		return err
	}
	shared := r.Registry != nil && r.Info().Shared
	if r.address, err = advertised(c, shared, httpPort, interfaces); err != nil || r.Registry != nil {
		return err
	}
	number, err := staticNumber(c, r.workers, r.address, os.Hostname)
	r.Registry = worker.NewStatic(number)
	return err
}

func (r *registry) openRecords(cfg config.Config, dbs *databases, log *slog.Logger) (err error) {
	if cfg.Snowflake.UsesStores() && len(dbs.stores) > 0 {
		return dbs.stores[0].openRegistry(r)
	}
	url, err := registryURL(cfg)
	if err != nil {
		return err
	}
	if config.IsEtcd(url) {
		return r.openEtcdBeside(url, cfg)
	}
	several := isDivided(cfg) && slices.ContainsFunc(cfg.Stores, func(s string) bool { return config.CutStoreName(s).URL == url })
	if r.records, err = sqldb.OpenRecords(url, sqldb.Config{ConnectTimeout: cfg.ConnectTimeout, Lease: cfg.Snowflake.Lease, Several: several, Logger: log}); err == nil {
		r.Registry = worker.NewPool(r.records)
	}
	return err
}

var ordinal = regexp.MustCompile(`-([0-9]+)$`)

// ofAddress matches a host name that a cloud made of an IPv4 address: hosts of several networks end in the same number.
var ofAddress = regexp.MustCompile(`(^|-)[0-9]{1,3}(-[0-9]{1,3}){3}$`)

// staticNumber returns the worker ID that the configuration gives to this node.
func staticNumber(c config.Snowflake, workers config.Workers, address string, hostname func() (string, error)) (int64, error) {
	switch {
	case c.WorkerID != "":
		return config.WorkerNumber("snowflake.worker-id", c.WorkerID, c.WorkerID, workers)
	case len(c.WorkerMap) > 0:
		byAddress, err := config.WorkerMap(c.WorkerMap, workers)
		if err != nil {
			return 0, err
		}
		n, found := byAddress[address]
		if !found {
			return 0, &config.Error{
				Key: "snowflake.worker-map", Value: strings.Join(c.WorkerMap, config.ListSeparator),
				Limit: "must name this node's address " + address + " (another one is set with snowflake.address)",
			}
		}
		return n, nil
	}
	const key = "snowflake.worker-from-hostname"
	host, err := hostname()
	if err != nil {
		return 0, fmt.Errorf("host name: %w", err)
	}
	short, _, _ := strings.Cut(host, ".") // a StatefulSet's may be fully qualified
	m := ordinal.FindStringSubmatch(short)
	if m == nil {
		return 0, &config.Error{Key: key, Value: host, Limit: "must be a host name that ends in a hyphen and a number, such as leaf-0"}
	}
	if ofAddress.MatchString(short) {
		return 0, &config.Error{Key: key, Value: host, Limit: "must not be made of an IP address, as hosts of several networks end in one number; set snowflake.worker-id instead, another one on each node"}
	}
	n, err := strconv.ParseInt(m[1], 10, 32)
	if err != nil || n+c.WorkerOffset < 0 || n+c.WorkerOffset > workers.Most {
		return 0, &config.Error{Key: key, Value: host, Limit: fmt.Sprintf("plus snowflake.worker-offset=%d must be a worker ID within %v", c.WorkerOffset, workers)}
	}
	return n + c.WorkerOffset, nil
}

// manage is the registry for commands. own returns the number that this process holds, -1
// for none.
func (r *registry) manage(c config.Snowflake, own func() int64) *manage.Registry {
	return &manage.Registry{Opened: r.Registry, Layout: r.layout, Namespace: r.namespace(c), Own: own}
}
