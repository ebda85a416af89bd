package app

import (
	"context"
	"log/slog"

	"github.com/leaf-idgen/leaf/discovery"
	"github.com/leaf-idgen/leaf/driver/etcd"
	"github.com/leaf-idgen/leaf/internal/config"
	"github.com/leaf-idgen/leaf/worker"
)

// etcdDialect is the word for a store in etcd.
const etcdDialect = "etcd"

// etcdStore is a store in etcd. The registry and the directory of the same URL are beside it, each in a
// folder of its own. The records of slots are in the folder of the store.
type etcdStore struct {
	*etcd.Store

	url    string
	cfg    config.Config
	log    *slog.Logger
	beside *[]passwords // what was opened of the registry, the directory and the slots
}

func openEtcdStore(url string, c config.Config, log *slog.Logger) (store, error) {
	at, err := etcdAt(url, config.EtcdStore, c)
	if err != nil {
		return nil, err
	}
	at.Logger = log
	s, err := etcd.NewStore(at)
	if err != nil {
		return nil, err
	}
	return etcdStore{s, url, c, log, new([]passwords)}, nil
}

// etcdAt returns where something lies in the etcd of a store.
func etcdAt(url, folder string, c config.Config) (etcd.Config, error) {
	at, err := etcd.ParseURL(url, folder)
	at.DialTimeout = c.ConnectTimeout
	return at, err
}

// ApplySchema makes nothing: keys need no tables.
func (s etcdStore) ApplySchema(ctx context.Context) (report []string, err error) {
	if _, err := s.ClusterID(ctx); err != nil {
		return nil, err
	}
	return []string{"nothing to create: a store in etcd has no tables"}, nil
}

func (etcdStore) CheckFile() error    { return nil }
func (etcdStore) MissingFile() string { return "" }
func (etcdStore) Dialect() string     { return etcdDialect }
func (s etcdStore) Redacted() string  { return config.Redact(s.url) }

func (s etcdStore) openRegistry(r *registry) error {
	if err := r.openEtcdBeside(s.url, s.cfg); err != nil {
		return err
	}
	r.etcd.BelongTo(s.Store)
	*s.beside = append(*s.beside, r.etcd)
	return nil
}

// openEtcdBeside opens the registry of worker IDs beside a store in etcd.
func (r *registry) openEtcdBeside(url string, c config.Config) error {
	at, err := etcdAt(url, config.EtcdWorkers, c)
	if err != nil {
		return err
	}
	at.Lease = c.Snowflake.Lease
	if r.etcd, err = etcd.NewRecords(at); err != nil {
		return err
	}
	r.Registry = worker.NewPool(r.etcd)
	return nil
}

func (s etcdStore) openDirectory() (discovery.Directory, error) {
	at, err := etcdAt(s.url, config.EtcdNodes, s.cfg)
	if err != nil {
		return nil, err
	}
	at.Logger = s.log
	d, err := etcd.NewDirectory(at)
	if err != nil {
		return nil, err
	}
	d.BelongTo(s.Store)
	*s.beside = append(*s.beside, d)
	return d, nil
}

func (s etcdStore) openSlots() (worker.Records, error) {
	r, err := s.Slots()
	if err != nil {
		return nil, err
	}
	*s.beside = append(*s.beside, r)
	return r, nil
}

func (s etcdStore) forgetAgreed(name string, all bool) string {
	return "from the first store: " + s.ForgetAgreed(name, all)
}

func (s etcdStore) newLogin(n *newLogins, key, url string) error {
	was, err := etcdAt(s.url, config.EtcdStore, s.cfg)
	if err != nil {
		return err
	}
	is, err := etcdAt(url, config.EtcdStore, s.cfg)
	if err != nil {
		return err
	}
	n.etcd(key, s, was, is)
	return nil
}

// SetPassword sets the password of all that is beside the store, too.
func (s etcdStore) SetPassword(password string) (changed bool) {
	for _, p := range *s.beside {
		p.SetPassword(password)
	}
	return s.Store.SetPassword(password)
}
