package chaos

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/leaf-idgen/leaf/internal/test/server"
)

// buildMariaDB is one server for everything.
func buildMariaDB(ctx context.Context, c *cluster) error {
	db, err := c.oneMariaDB(ctx)
	if err != nil {
		return err
	}
	if err := c.withSQLRegistry(ctx); err != nil {
		return err
	}
	c.add(c.nodeFaults(), c.clockFaults(), c.networkFaults("database"), c.networkFaults("registry"), c.instanceFaults(db), c.rowFaults(),
		c.fileFaults(nodeFiles...), c.clientFaults())
	return c.withDisks()
}

// buildOutage is the same, with one fault: the database is gone for nearly all of
// the run.
func buildOutage(ctx context.Context, c *cluster) error {
	db, err := c.oneMariaDB(ctx)
	if err != nil {
		return err
	}
	if err := c.withSQLRegistry(ctx); err != nil {
		return err
	}
	gone := c.instanceFaults(db)[0]
	gone.name = "database gone"
	whole := c.cfg.Duration - calm - 2*recovery - 2*time.Second
	gone.hold = [2]time.Duration{whole, whole}
	c.add([]fault{gone})
	return nil
}

// buildSQLite is one file that three nodes share, each with a number of its own.
func buildSQLite(ctx context.Context, c *cluster) error {
	path := filepath.Join(c.folder, "shared.db")
	c.versions = append(c.versions, "SQLite, built in")
	for i := range 3 {
		n, err := newNode(i, c.cfg.Binary, c.folder)
		if err != nil {
			return err
		}
		n.args = append(n.args, "--store", "sqlite:"+path, "--node-discovery", "off",
			"--snowflake-registry", "static", "--snowflake-worker-id", strconv.Itoa(i+1),
			"--snowflake-lease", lease.String(), "--snowflake-renew-interval", "500ms",
			"--snowflake-horizon", horizon.String(), "--snowflake-margin", margin.String())
		c.nodes = append(c.nodes, n)
	}
	c.registry = true
	if err := c.makeTags(ctx, "sqlite:"+path); err != nil {
		return err
	}
	c.add(c.nodeFaults(), c.clockFaults(), c.fileFaults(nodeFiles...), c.fileFaults("worker.json"),
		[]fault{c.sharedFault(path + "-wal"), c.sharedFault(path + "-shm")}, c.clientFaults())
	return nil
}

// buildEtcd is three etcd for everything: tags, owners of tags in strict order, and worker IDs.
func buildEtcd(ctx context.Context, c *cluster) error {
	e, err := c.ensemble(ctx, etcd)
	if err != nil {
		return err
	}
	store := func(addrs []string) string { return "etcd://" + list(addrs) + "/chaos" }
	for i := range 3 {
		n, err := newNode(i, c.cfg.Binary, c.folder)
		if err != nil {
			return err
		}
		c.nodes = append(c.nodes, n)
		if n.ways["database"], err = through(e.Servers()...); err != nil {
			return err
		}
		n.args = append(n.args, "--store", store(n.ways["database"].addrs()))
	}
	if err := c.makeTags(ctx, store(e.Servers())); err != nil {
		return err
	}
	if err := c.withNamedRegistry(ctx, "etcd", e.Servers()); err != nil {
		return err
	}
	c.add(c.nodeFaults(), c.clockFaults(), c.networkFaults("database"), c.networkFaults("registry"), c.ensembleFaults("etcd", e))
	return c.withDisks()
}

// oneMariaDB starts a server and prepares nodes that use it.
func (c *cluster) oneMariaDB(ctx context.Context) (*server.Instance, error) {
	db, err := server.StartMariaDB(ctx, "")
	if err != nil {
		return nil, err
	}
	c.later(db.Close)
	c.database = func() server.Database { return db.Database }
	if err := c.addNodes(func(int) server.Database { return db.Database }); err != nil {
		return nil, err
	}
	return db, c.prepare(ctx)
}

// buildFailover is a semi-synchronous pair of MariaDB, with three etcd for cluster
// fence and registry.
func buildFailover(ctx context.Context, c *cluster) error {
	p, err := server.StartMariaDBPair(ctx, "", server.PairOptions{})
	if err != nil {
		return err
	}
	if err := c.onPair(ctx, p); err != nil {
		return err
	}
	e, err := c.ensemble(ctx, etcd)
	if err != nil {
		return err
	}
	if err := c.withFence("etcd", e.Servers()); err != nil {
		return err
	}
	if err := c.withNamedRegistry(ctx, "etcd", e.Servers()); err != nil {
		return err
	}
	c.add(c.nodeFaults(), c.clockFaults(), c.networkFaults("database"), c.networkFaults("fence"), c.networkFaults("registry"),
		c.pairFaults(p), []fault{c.cleanFailover(p), c.lossyFailover(p), c.splitBrain(p)}, c.ensembleFaults("etcd", e), c.rowFaults(),
		c.fileFaults("fence"))
	return c.withDisks()
}

// buildAwkward is a pair whose standby would go its own way wherever a statement leaves
// its meaning to the session. All that is needed is in it, without a fence that would hide
// the difference.
func buildAwkward(ctx context.Context, c *cluster) error {
	p, err := server.StartMariaDBAwkwardPair(ctx, "", server.PairOptions{})
	if err != nil {
		return err
	}
	if err := c.onPair(ctx, p); err != nil {
		return err
	}
	if err := c.withSQLRegistry(ctx); err != nil {
		return err
	}
	c.atDatabase = append(c.atDatabase, "registry")
	c.add(c.nodeFaults(), c.networkFaults("database"), c.pairFaults(p), []fault{c.cleanFailover(p)}, c.rowFaults())
	return nil
}

// buildUnfenced is a semi-synchronous pair of MariaDB and nothing else.
func buildUnfenced(ctx context.Context, c *cluster) error {
	p, err := server.StartMariaDBPair(ctx, "", server.PairOptions{})
	if err != nil {
		return err
	}
	if err := c.onPair(ctx, p); err != nil {
		return err
	}
	c.withoutRegistry()
	c.add(c.nodeFaults()[:1], []fault{c.cleanFailover(p), c.lossyFailover(p), c.splitBrain(p)})
	return nil
}

// buildGalera is three MariaDB that all accept writes, each node at another one, with
// three ZooKeeper for the worker IDs, in the original's layout.
func buildGalera(ctx context.Context, c *cluster) error {
	g, err := server.StartGalera(ctx, "", 3)
	if err != nil {
		return err
	}
	c.later(g.Close)
	c.database = func() server.Database { return g.Database(0) }
	if err := c.addNodes(g.Database); err != nil {
		return err
	}
	if err := c.prepare(ctx); err != nil {
		return err
	}
	e, err := c.ensemble(ctx, zooKeeper)
	if err != nil {
		return err
	}
	if err := c.withNamedRegistry(ctx, "zookeeper", e.Servers()); err != nil {
		return err
	}
	c.add(c.nodeFaults(), c.clockFaults(), c.networkFaults("database"), c.networkFaults("registry"),
		c.galeraFaults(g), c.ensembleFaults("zookeeper", e), c.rowFaults(), c.fileFaults("worker.json"))
	return c.withDisks()
}

// buildPostgres is a synchronous pair of PostgreSQL, with three ZooKeeper for cluster
// fence and registry.
func buildPostgres(ctx context.Context, c *cluster) error {
	p, err := server.StartPostgresPair(ctx, "", server.PairOptions{})
	if err != nil {
		return err
	}
	if err := c.onPair(ctx, p); err != nil {
		return err
	}
	e, err := c.ensemble(ctx, zooKeeper)
	if err != nil {
		return err
	}
	if err := c.withFence("zookeeper", e.Servers()); err != nil {
		return err
	}
	if err := c.withNamedRegistry(ctx, "zookeeper-recycle", e.Servers()); err != nil {
		return err
	}
	c.add(c.nodeFaults(), c.clockFaults(), c.networkFaults("database"), c.networkFaults("fence"), c.networkFaults("registry"),
		c.pairFaults(p), []fault{c.cleanFailover(p), c.lossyFailover(p), c.splitBrain(p)}, c.ensembleFaults("zookeeper", e), c.rowFaults())
	return c.withDisks()
}

// buildSync is a synchronous pair of PostgreSQL for everything: it loses nothing, so
// there is no need for a cluster fence, and the registry may be in it.
func buildSync(ctx context.Context, c *cluster) error {
	p, err := server.StartPostgresPair(ctx, "", server.PairOptions{})
	if err != nil {
		return err
	}
	if err := c.onPair(ctx, p); err != nil {
		return err
	}
	if err := c.withSQLRegistry(ctx); err != nil {
		return err
	}
	c.atDatabase = append(c.atDatabase, "registry")
	c.add(c.nodeFaults(), c.clockFaults(), c.networkFaults("database"), c.networkFaults("registry"),
		c.pairFaults(p), []fault{c.cleanFailover(p)}, c.rowFaults())
	return c.withDisks()
}

// onPair prepares nodes that use the primary of a pair.
func (c *cluster) onPair(ctx context.Context, p *server.Pair) error {
	c.later(p.Close)
	c.database = func() server.Database { return p.Database(p.Primary()) }
	if err := c.addNodes(func(int) server.Database { return c.database() }); err != nil {
		return err
	}
	return c.prepare(ctx)
}

// ensembleKind is how an ensemble is started and asked.
type ensembleKind struct {
	name         string
	start, apart func(ctx context.Context, parent string, nodes int) (*server.Ensemble, error)
	version      func(ctx context.Context, servers string) (string, error)
}

var (
	etcd      = ensembleKind{"etcd", server.StartEtcd, server.StartEtcdApart, server.EtcdVersion}
	zooKeeper = ensembleKind{"zookeeper", server.StartZooKeeper, server.StartZooKeeperApart, server.ZooKeeperVersion}
)

// ensemble starts three servers of a kind, where the machine allows it in a network
// in which they can be cut off from one another.
func (c *cluster) ensemble(ctx context.Context, k ensembleKind) (*server.Ensemble, error) {
	e, err := k.apart(ctx, "", 3)
	c.apart = err == nil
	if errors.Is(err, server.ErrNoNetwork) && os.Getenv("CI") != "true" {
		c.cfg.Progress("NOT TESTED: " + err.Error() + ": no partitions between members of " + k.name)
		e, err = k.start(ctx, "", 3)
	}
	if err != nil {
		return nil, err
	}
	c.later(e.Close)
	v, err := k.version(ctx, list(e.Servers()))
	c.versions = append(c.versions, k.name+" "+v)
	return e, err
}

// withSQLRegistry puts the registry into the database of the tags, over ways of its own.
func (c *cluster) withSQLRegistry(ctx context.Context) error {
	d := c.database()
	return c.withRegistry(ctx, []string{d.Addr()}, func(addrs []string) []string {
		return []string{"--snowflake-registry", "sql", "--snowflake-registry-address", d.Via(addrs[0]).URL()}
	})
}

// withNamedRegistry puts it on an ensemble of its own.
func (c *cluster) withNamedRegistry(ctx context.Context, kind string, addrs []string) error {
	return c.withRegistry(ctx, addrs, func(addrs []string) []string {
		flags := []string{"--snowflake-registry", kind, "--snowflake-name", "chaos"}
		for _, a := range addrs {
			flags = append(flags, "--snowflake-registry-address", a)
		}
		return flags
	})
}

// add adds kinds of faults.
func (c *cluster) add(groups ...[]fault) {
	for _, g := range groups {
		c.faults = append(c.faults, g...)
	}
}
