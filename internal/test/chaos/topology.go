package chaos

import "context"

// topologyDef is a set of servers, and what is promised on it.
type topologyDef struct {
	name    string
	about   string
	expect  string // the promise, for people
	repeats bool   // between nodes IDs may repeat: rule L
	regress bool   // tags may latch
	// unordered says that the database may lose what it has acknowledged, so that two nodes own one slot: the real-time
	// order of tags in strict order is shown, and no promise.
	unordered bool
	build     func(ctx context.Context, c *cluster) error
}

const (
	neverTwice = "No ID twice, IDs of one process increase, and every node serves again after each fault."
	ordered    = " Tags in strict order keep to real time."
	noLatch    = " No tag latches but the one whose row is re-created: the database loses no commit."
	fenced     = " Whatever the database loses, the cluster fence refuses: the tag latches, and one command on any node repairs it."
	unfenced   = " No node repeats a number of its own. Two nodes may issue the same number after commits were lost and during the split brain, since without a cluster fence each protects only its own ranges: rule L."
)

// definitions are all topologies, in the order of a full run.
var definitions = []topologyDef{
	{
		name: "mariadb", about: "One MariaDB, for tags and worker IDs. No cluster fence.",
		expect: neverTwice + ordered + noLatch, build: buildMariaDB,
	},
	{
		name: "sqlite", about: "Three nodes on one SQLite file, worker IDs in the configuration. No cluster fence.",
		expect: neverTwice + ordered + " A node that loses a file issues nothing more and says what to type.", build: buildSQLite,
	},
	{
		name: "outage", about: "One MariaDB, which is gone for nearly all of the run.",
		expect: neverTwice + ordered + " Tags with stock are served all the time.", build: buildOutage,
	},
	{
		name: "failover", about: "MariaDB primary and semi-synchronous standby, failovers that lose commits. Cluster fence and worker IDs on three etcd.",
		expect: neverTwice + fenced, regress: true, unordered: true, build: buildFailover,
	},
	{
		name: "awkward", about: "MariaDB primary and semi-synchronous standby, for tags and worker IDs. The standby gets statements instead of rows, and its settings differ in all that a statement can depend on. No cluster fence.",
		expect: neverTwice + ordered + noLatch, build: buildAwkward,
	},
	{
		name: "unfenced", about: "The same pair without a cluster fence: a demonstration of what each node can protect by itself.",
		expect: unfenced[1:], repeats: true, regress: true, unordered: true, build: buildUnfenced,
	},
	{
		name: "galera", about: "Galera: three MariaDB that all accept writes, each node at another one. Worker IDs on three ZooKeeper, in the original's layout. No cluster fence.",
		expect: neverTwice + ordered + noLatch, build: buildGalera,
	},
	{
		name: "etcd", about: "Three etcd, for tags and worker IDs. No database, no cluster fence.",
		expect: neverTwice + ordered + " No tag latches.", build: buildEtcd,
	},
	{
		name: "postgres", about: "PostgreSQL primary and synchronous standby, failovers that lose commits. Cluster fence and worker IDs (recycled) on three ZooKeeper.",
		expect: neverTwice + fenced, regress: true, unordered: true, build: buildPostgres,
	},
	{
		name: "postgres-sync", about: "PostgreSQL primary and synchronous standby, for tags and worker IDs, failovers that lose nothing. No cluster fence.",
		expect: neverTwice + ordered + noLatch, build: buildSync,
	},
}

// Topologies returns their names.
func Topologies() []string {
	var names []string
	for _, t := range definitions {
		names = append(names, t.name)
	}
	return names
}

// topology finds one by its name.
func topology(name string) (t topologyDef, found bool) {
	for _, t := range definitions {
		if t.name == name {
			return t, true
		}
	}
	return topologyDef{}, false
}
