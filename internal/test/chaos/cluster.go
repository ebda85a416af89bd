package chaos

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/leaf-idgen/leaf/internal/test/server"
)

// The tags whose rows faults are aimed at, and the step of the first.
const (
	edited     = "edited"
	reborn     = "reborn"
	editedStep = 50
)

// Bounds of claims that are short enough for a run: the number of a node that died
// returns after horizon and margin.
const (
	lease   = 2 * time.Second
	horizon = 6 * time.Second
	margin  = time.Second
)

// tag is a tag of the clients.
type tag struct {
	name  string
	step  int
	flags []string
}

// tags of all runs: a step that lasts, one that divides nothing, one that batches
// straddle, one that is edited, and one whose row is deleted. Those in strict order are so
// many that in most runs each node owns some.
var tags = []tag{
	{"stock", 200_000, nil},
	{"short", 7, []string{"--fixed-step"}},
	{"batch", 1000, []string{"--max-step", "2000"}},
	{edited, editedStep, []string{"--max-step", "10000"}},
	{reborn, 10, []string{"--fixed-step"}},
	{"order-a", 100, strictOrder},
	{"order-b", 100, strictOrder},
	{"order-c", 100, strictOrder},
	{"order-d", 100, strictOrder},
	{"order-e", 100, strictOrder},
	{"order-f", 100, strictOrder},
}

var strictOrder = []string{"--fixed-step", "--order", "strict"}

// tags are those of the run.
func (c *cluster) tags() (all []tag) {
	strict := 0
	for _, t := range tags {
		if t.strict() {
			if strict++; c.cfg.Strict > 0 && strict > c.cfg.Strict {
				continue
			}
		}
		all = append(all, t)
	}
	return append(all, rows()...)
}

// strict reports whether the tag is in strict order.
func (t tag) strict() bool { return strings.HasPrefix(t.name, "order-") }

// strictTags are the names of the tags in strict order.
func (c *cluster) strictTags() (names []string) {
	for _, t := range c.tags() {
		if t.strict() {
			names = append(names, t.name)
		}
	}
	return names
}

// streams are what the clients of one node ask for, over all protocols: each tag in strict order over
// another one at each node.
func streams(snowflake bool, strict []string, number int) []stream {
	all := []stream{
		{name: "stock", space: "stock", path: "/api/segment/get/stock", count: 1, rate: 20, stock: true},
		{name: "stock-grpc", space: "stock", path: "/api/segment/get/stock", count: 1, rate: 10, stock: true, protocol: overGRPC},
		{name: "stock-resp", space: "stock", path: "/api/segment/get/stock", count: 1, rate: 10, stock: true, protocol: overRESP},
		{name: "short", space: "short", path: "/api/segment/get/short", count: 1, rate: 10},
		{name: "batch", space: "batch", path: "/api/segment/get/batch", count: 17, rate: 10, protocol: overGRPC},
		{name: edited, space: edited, path: "/api/segment/get/" + edited, count: 3, rate: 5, protocol: overRESP},
		{name: reborn, space: reborn, path: "/api/segment/get/" + reborn, count: 1, rate: 5},
	}
	for i, tag := range strict {
		all = append(all, stream{name: tag, space: tag, path: "/api/segment/get/" + tag, count: 1 + i%2*3, rate: 5, strict: true, protocol: protocols[(i+number)%3]})
	}
	all = append(all, entityStreams(number)...)
	if snowflake {
		all = append(all,
			stream{name: "snowflake", space: "snowflake", path: "/api/snowflake/get/key", count: 1, rate: 20},
			stream{name: "snowflake-batch", space: "snowflake", path: "/api/snowflake/get/key", count: 23, rate: 5, protocol: overGRPC})
	}
	return all
}

// cluster is what a topology builds: servers, nodes, and the faults that fit them.
type cluster struct {
	cfg      Config
	folder   string // everything of the run
	nodes    []*node
	database func() server.Database // the one that counts now; nil: the nodes share a file
	// atDatabase names the ways that lead to the database.
	atDatabase []string
	fenced     bool // there is a cluster fence
	apart      bool // members of an ensemble can be cut off from one another
	registry   bool // snowflake mode is on
	faults     []fault
	versions   []string // of the servers
	dump       []string // statements that bring back the rows of the beginning
	splits     []split  // what each split brain was
	lost       []lostFile
	followed   map[string]int // commands that texts named and the run typed, by what was typed
	broken     []string       // promises that a fault saw broken
	late       []string       // what a fault saw unanswered in time
	closers    []func() error
}

// later adds what close does, the last one first.
func (c *cluster) later(f func() error) { c.closers = append(c.closers, f) }

// close ends nodes and servers.
func (c *cluster) close() error {
	for _, n := range c.nodes {
		n.close()
	}
	var errs []error
	for _, f := range slices.Backward(c.closers) {
		errs = append(errs, f())
	}
	return errors.Join(errs...)
}

// leaf runs a command of the program.
func (c *cluster) leaf(ctx context.Context, args ...string) error { return c.leafAt(ctx, "", args...) }

// leafAt does so for the node whose data directory it is. Without one the command knows nothing of nodes: the default one may be
// that of a node of this machine.
func (c *cluster) leafAt(ctx context.Context, dir string, args ...string) error {
	ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, c.cfg.Binary, args...)
	dir = cmp.Or(dir, filepath.Join(c.folder, "commands"))
	cmd.Env = append(os.Environ(), "LEAF_STORE_CONNECT_TIMEOUT=2s", "LEAF_DATA_DIR="+dir) // a busy machine
	out, err := cmd.CombinedOutput()
	if err != nil {
		return fmt.Errorf("leaf %s: %w: %s", strings.Join(args, " "), err, strings.TrimSpace(string(out)))
	}
	return nil
}

// open connects to the database that counts now.
func (c *cluster) open() (*sql.DB, error) { return open(c.database()) }

func open(d server.Database) (*sql.DB, error) {
	dsn, err := d.DSN()
	if err != nil {
		return nil, err
	}
	if strings.HasPrefix(d.URL(), "mysql:") {
		return sql.Open("mysql", dsn)
	}
	return sql.Open("pgx", dsn)
}

// sql executes statements in one transaction.
func (c *cluster) sql(ctx context.Context, statements ...string) error {
	ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	db, err := c.open()
	if err != nil {
		return err
	}
	defer db.Close()
	return poll(ctx, 20*time.Second, func(ctx context.Context) error { // again after a deadlock or a conflict
		tx, err := db.BeginTx(ctx, nil)
		if err != nil {
			return err
		}
		defer func() { _ = tx.Rollback() }()
		for _, s := range statements {
			if _, err := tx.ExecContext(ctx, s); err != nil {
				return fmt.Errorf("%s: %w", s, err)
			}
		}
		return tx.Commit()
	})
}

// names returns the names of the tags.
func (c *cluster) names() []string {
	var names []string
	for _, t := range c.tags() {
		names = append(names, t.name)
	}
	return names
}

// addNodes describes three nodes. databases says which one a node uses; each gets a
// way of its own to it.
func (c *cluster) addNodes(databases func(i int) server.Database) error {
	for i := range 3 {
		n, err := newNode(i, c.cfg.Binary, c.folder)
		if err != nil {
			return err
		}
		c.nodes = append(c.nodes, n)
		d := databases(i)
		c.atDatabase = []string{"database"}
		if n.ways["database"], err = through(d.Addr()); err != nil {
			return err
		}
		n.args = append(n.args, "--store", d.Via(n.ways["database"].addrs()[0]).URL())
	}
	return nil
}

// prepare asks the database for its version, and makes the tables and the tags.
func (c *cluster) prepare(ctx context.Context) error {
	version, err := c.database().Version(ctx)
	if err != nil {
		return err
	}
	store := c.database().URL()
	kind, _, _ := strings.Cut(store, ":")
	c.versions = append(c.versions, kind+" "+version)
	return c.makeTags(ctx, store)
}

// makeTags makes the tables, which etcd has none of, and the tags.
func (c *cluster) makeTags(ctx context.Context, store string) error {
	if !strings.HasPrefix(store, "etcd:") {
		if err := c.leaf(ctx, "schema", "apply", "--store", store); err != nil {
			return err
		}
	}
	for _, t := range c.tags() {
		args := append([]string{"tag", "create", t.name, "--step", strconv.Itoa(t.step), "--store", store}, t.flags...)
		if err := c.leaf(ctx, args...); err != nil {
			return err
		}
	}
	return nil
}

// withoutRegistry switches snowflake mode off.
func (c *cluster) withoutRegistry() {
	for _, n := range c.nodes {
		n.args = append(n.args, "--no-snowflake-enable")
	}
}

// withRegistry lets the nodes claim worker IDs in a registry, which is declared new.
// addrs are its servers; flags, for a client of given addresses, its kind and where it is.
func (c *cluster) withRegistry(ctx context.Context, addrs []string, flags func(addrs []string) []string) error {
	c.registry = true
	if err := c.leaf(ctx, append([]string{"worker", "init"}, flags(addrs)...)...); err != nil {
		return err
	}
	for _, n := range c.nodes {
		w, err := through(addrs...)
		if err != nil {
			return err
		}
		n.ways["registry"] = w
		n.args = append(n.args,
			"--snowflake-address", n.addr, "--snowflake-force-address",
			"--snowflake-lease", lease.String(), "--snowflake-renew-interval", "500ms",
			"--snowflake-horizon", horizon.String(), "--snowflake-margin", margin.String(),
			"--snowflake-peer-interval", "2s")
		n.args = append(n.args, flags(w.addrs())...)
	}
	return nil
}

// withFence gives the nodes a cluster fence on the servers of addrs.
func (c *cluster) withFence(kind string, addrs []string) error {
	c.fenced = true
	for _, n := range c.nodes {
		w, err := through(addrs...)
		if err != nil {
			return err
		}
		n.ways["fence"] = w
		n.args = append(n.args, "--segment-cluster-fence", kind+"://"+list(w.addrs())+"/chaos")
	}
	return nil
}

// startAll starts the nodes and returns when each serves every tag.
func (c *cluster) startAll(ctx context.Context) error {
	for _, n := range c.nodes {
		if err := n.start(ctx); err != nil {
			return err
		}
	}
	for _, n := range c.nodes {
		if err := c.awaitModes(ctx, n); err != nil {
			return err
		}
	}
	return nil
}

// awaitModes returns when each mode of the node that is on says by itself that it is ready.
func (c *cluster) awaitModes(ctx context.Context, n *node) error {
	modes := []string{"segment"}
	if c.registry {
		modes = append(modes, "snowflake")
	}
	for _, mode := range modes {
		if err := n.await(ctx, c.cfg.Recovery, "/readyz?mode="+mode); err != nil {
			return err
		}
	}
	return nil
}
