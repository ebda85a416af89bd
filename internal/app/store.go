package app

import (
	"context"
	"fmt"
	"log/slog"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/discovery"
	"github.com/leaf-idgen/leaf/driver/sqldb"
	"github.com/leaf-idgen/leaf/internal/audit"
	"github.com/leaf-idgen/leaf/internal/auth"
	"github.com/leaf-idgen/leaf/internal/config"
	"github.com/leaf-idgen/leaf/internal/manage"
	"github.com/leaf-idgen/leaf/segment"
	"github.com/leaf-idgen/leaf/worker"
)

// store is what a node or a command asks of a database, or of etcd in the place of one.
type store interface {
	manage.Store
	segment.Board
	audit.Store
	auth.Store

	// Verify is Bind without writing anything, and ApplySchema makes the tables that are missing.
	Verify(ctx context.Context, b segment.Binding) error
	ApplySchema(ctx context.Context) (report []string, err error)

	// Agree records what all nodes must have in common, unless something is recorded.
	Agree(ctx context.Context, name, value string) (recorded string, err error)

	// forgetAgreed says how an administrator removes what was recorded under name; all: under each name that begins so.
	forgetAgreed(name string, all bool) string

	// AllAnswers returns what the nodes have told the board of all tags.
	AllAnswers(ctx context.Context) ([]segment.Answer, error)

	// Expect, KnownCluster and ClusterID are of the ID of the cluster whose store it is.
	Expect(id string) error
	KnownCluster() string
	ClusterID(ctx context.Context) (string, error)

	// CheckFile and MissingFile are of the file of a database in one.
	CheckFile() error
	MissingFile() string

	// Dialect returns a word for the kind of the store, and Redacted its URL without a password.
	Dialect() string
	Redacted() string
	Close() error

	// openRegistry opens the registry of worker IDs in the store, and openDirectory the
	// directory of nodes.
	openRegistry(r *registry) error
	openDirectory() (discovery.Directory, error)

	// openSlots opens the records that say which node serves which tags in strict order. The caller closes
	// them before the store.
	openSlots() (worker.Records, error)

	// newLogin notes in n what the URL in a new configuration changes.
	newLogin(n *newLogins, key, url string) error
}

// isDivided reports whether a rule divides the tags, as over several databases: segment.Router has a Fingerprint then.
func isDivided(c config.Config) bool { return len(c.Stores) > 1 || len(c.TagRules) > 0 }

// openStore opens the store of a URL. It does not connect.
func openStore(url string, c config.Config, log *slog.Logger) (store, error) {
	if config.IsEtcd(url) {
		return openEtcdStore(url, c, log)
	}
	s, err := sqldb.Open(url, sqldb.Config{
		ConnectTimeout: c.ConnectTimeout,
		MaxConns:       int(c.Segment.MaxLoads) + spareConns,
		Lease:          c.Snowflake.Lease,
		Several:        isDivided(c),
		Logger:         log,
	})
	if err != nil {
		return nil, err
	}
	return sqlStore{s}, nil
}

// sqlStore is a database.
type sqlStore struct{ *sqldb.Store }

func (s sqlStore) openRegistry(r *registry) (err error) {
	if r.records, err = s.Records(); err == nil {
		r.Registry = worker.NewPool(r.records)
	}
	return err
}

func (s sqlStore) openDirectory() (discovery.Directory, error) { return s.Directory() }

func (s sqlStore) openSlots() (worker.Records, error) { return s.Slots() }

func (s sqlStore) forgetAgreed(name string, all bool) string {
	names := "= '" + name + "'"
	if all {
		names = "LIKE '" + name + "%'"
	}
	return "from the first database with SQL: DELETE FROM leaf_meta WHERE name " + names
}

func (s sqlStore) newLogin(n *newLogins, key, url string) error { return n.database(key, s, url) }

// notInEtcd is the word for a command that SQL alone has.
func notInEtcd(what, address string) error {
	return fmt.Errorf("%w: %s is for databases of SQL, and the store %s is in etcd", leaf.ErrConflict, what, address)
}
