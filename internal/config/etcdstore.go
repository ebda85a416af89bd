package config

import (
	"strings"
	"time"

	"github.com/leaf-idgen/leaf/driver/etcd"
)

// Where a store and worker IDs lie in etcd.
const (
	EtcdStore   = "/leaf/segment"
	EtcdWorkers = "/leaf/worker"
)

// IsEtcd reports whether the URL of a store is one of etcd.
func IsEtcd(url string) bool {
	return strings.HasPrefix(url, "etcd://") || strings.HasPrefix(url, "etcds://")
}

// storeInEtcd returns the URL of the store if it is in etcd, "" if it is not.
func (c Config) storeInEtcd() string {
	if len(c.Stores) == 1 && IsEtcd(c.Stores[0]) {
		return c.Stores[0]
	}
	return ""
}

// validateEtcdStore checks what else has other limits with a store in etcd.
func (c Config) validateEtcdStore() (errs []error) {
	s := c.Snowflake
	if c.storeInEtcd() == "" || !s.Enable || !s.UsesStores() {
		return nil
	}
	if s.Registry == RegistrySQL {
		errs = append(errs, &Error{Key: "snowflake.registry", Value: s.Registry, Limit: "needs snowflake.registry-address, because the store is in etcd and no database; auto has the worker IDs in etcd, too"})
	}
	return append(errs, s.etcdLease()...)
}

// etcdLease checks the lease of a registry in etcd.
func (c Snowflake) etcdLease() []error {
	if c.Lease >= 2*time.Second && c.Lease%time.Second == 0 {
		return nil
	}
	return []error{&Error{Key: "snowflake.lease", Value: shortDuration(c.Lease), Limit: "must be at least 2s, in whole seconds, with etcd"}}
}

// checkEtcdStore returns why the URL is not one of a store in etcd, "" if it is.
func checkEtcdStore(url string, only bool) string {
	if !only {
		return "must be the only store: tags are divided between databases of SQL only"
	}
	if _, err := etcd.ParseURL(url, EtcdStore); err != nil { // it shows nothing of the URL
		return "must be " + etcd.URLForm
	}
	return ""
}
