package app

import (
	"errors"
	"fmt"
	"reflect"

	"github.com/leaf-idgen/leaf/driver/etcd"
	"github.com/leaf-idgen/leaf/driver/sqldb"
	"github.com/leaf-idgen/leaf/internal/config"
)

const (
	storeKey    = "store"
	registryKey = "snowflake.registry-address"
)

// newLogins are the passwords of a new configuration.
type newLogins struct {
	use    []func() (changed bool) // puts each into force
	differ []string                // keys that differ in more, with what differs
}

// newLogins compares the addresses of databases and registries with those in use.
func (a *App) newLogins(next config.Config) (n newLogins, err error) {
	now := a.cfg
	if err := n.stores(a.dbs, now.Stores, next.Stores); err != nil {
		return n, err
	}
	switch was, is := now.Snowflake, next.Snowflake; {
	case a.registry != nil && a.registry.records != nil && !was.UsesStores() && len(is.Addresses) == 1:
		if err := n.database(registryKey, a.registry.records, is.Addresses[0]); err != nil {
			return n, err
		}
	case a.registry != nil && a.registry.etcd != nil && !was.UsesStores():
		next := was // but for the addresses: the other settings are keys of their own
		next.Addresses = is.Addresses
		n.etcd(registryKey, a.registry.etcd, etcdRegistry(was), etcdRegistry(next))
	default:
		n.equal(registryKey, was.Addresses, is.Addresses)
	}
	n.coordinator(config.FenceKey, config.EtcdFence, a.fence, now.Segment.ClusterFence, next.Segment.ClusterFence)
	var directory any
	if a.presence != nil {
		directory = a.presence.Directory
	}
	n.coordinator(config.DiscoveryKey, config.EtcdNodes, directory, now.Node.Discovery, next.Node.Discovery)
	return n, nil
}

func (n *newLogins) equal(key string, was, is any) {
	if !reflect.DeepEqual(was, is) {
		n.differ = append(n.differ, key)
	}
}

// stores takes the databases of the nodes in the order of their list.
func (n *newLogins) stores(dbs *databases, was, is []string) error {
	if len(is) != len(was) || len(dbs.stores) != len(was) { // or the node uses no database
		n.equal(storeKey, was, is)
		return nil
	}
	for i := range is {
		before, after := config.CutStoreName(was[i]), config.CutStoreName(is[i])
		key := storeKey
		if before.Name != "" {
			key += " " + before.Name
		}
		if before.Name != after.Name {
			n.differ = append(n.differ, fmt.Sprintf("%s: name %q instead of %q", key, after.Name, before.Name))
			continue
		}
		if config.IsEtcd(before.URL) != config.IsEtcd(after.URL) {
			n.equal(key, before.URL, after.URL)
			continue
		}
		if err := dbs.stores[i].newLogin(n, key, after.URL); err != nil {
			return err
		}
	}
	return nil
}

func (n *newLogins) database(key string, d interface {
	Login(url string) (use func() bool, err error)
}, url string,
) error {
	use, err := d.Login(url)
	switch other, differs := errors.AsType[*sqldb.OtherDatabaseError](err); {
	case differs:
		n.differ = append(n.differ, key+": "+other.Difference)
	case err != nil:
		return &config.Error{Key: key, Value: config.Redact(url), Limit: err.Error()}
	default:
		n.use = append(n.use, use)
	}
	return nil
}

// passwords is what the driver of etcd has.
type passwords interface {
	SetPassword(password string) (changed bool)
}

// coordinator takes a URL of ZooKeeper, which has no password, or etcd.
func (n *newLogins) coordinator(key, folder string, opened any, was, is string) {
	before, err := config.ParseCoordinator(key, was, folder)
	after, err2 := config.ParseCoordinator(key, is, folder)
	if p, ok := opened.(passwords); ok && err == nil && err2 == nil && before.Etcd != nil && after.Etcd != nil {
		n.etcd(key, p, *before.Etcd, *after.Etcd)
		return
	}
	n.equal(key, was, is)
}

func (n *newLogins) etcd(key string, opened passwords, was, is etcd.Config) {
	password := is.Password
	was.Password, is.Password = "", ""
	switch {
	case was.Username != is.Username:
		n.differ = append(n.differ, fmt.Sprintf("%s: user %q instead of %q", key, is.Username, was.Username))
	case !reflect.DeepEqual(was, is):
		n.differ = append(n.differ, fmt.Sprintf("%s: %s instead of %s", key, place(is), place(was)))
	default:
		n.use = append(n.use, func() bool { return opened.SetPassword(password) })
	}
}

func place(c etcd.Config) string { return fmt.Sprintf("%q below %q", c.Endpoints, c.Prefix) }
