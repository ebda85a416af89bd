package chaos

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/leaf-idgen/leaf/internal/test/echo"
	"github.com/leaf-idgen/leaf/internal/test/server"
	"github.com/leaf-idgen/leaf/snowflake"
)

// Config says what to run.
type Config struct {
	// Topology is the name of one of [Topologies].
	Topology string
	// Seed determines the faults.
	Seed uint64
	// Duration is how long the clients run from when all of them were served once,
	// faults and the calm at the end together. At least 15 s.
	Duration time.Duration
	// Recovery is how long after the heal of a fault clients may have to wait until
	// all are served. 0 means 60 s.
	Recovery time.Duration
	// Strict is how many of the tags in strict order there are; 0: all. With few of them, some node may own none.
	Strict int

	// Only selects the faults of the run: those whose name contains one of these texts.
	// Empty means all faults of the topology.
	Only []string
	// Binary is the program, built by [Build].
	Binary string
	// Keep is the folder in which the logs of a run that failed are kept, in a folder
	// of their own. Empty means the system's temporary folder.
	Keep string
	// Progress is told what happens, if it is not nil.
	Progress func(string)
}

// calm is the time at the end in which nothing is broken.
const calm = 3 * time.Second

// run is a run in progress.
type run struct {
	cfg     Config
	cluster *cluster
	chance  *rand.Rand
	begin   time.Time
	served  time.Duration // since begin: when all clients had been served once
	clients []*client
	apps    []*application
	logs    []*idLog
	report  *Report
}

// Run runs one topology and reports what it showed. An error means that it could
// not be run: a server that is not installed (server.ErrMissing), a fault that could
// not be made or healed. A promise that was broken is in the report.
func Run(ctx context.Context, cfg Config) (_ *Report, err error) {
	t, found := topology(cfg.Topology)
	if !found {
		return nil, fmt.Errorf("topology %q: must be one of %s", cfg.Topology, strings.Join(Topologies(), ", "))
	}
	if cfg.Duration < 15*time.Second {
		return nil, fmt.Errorf("duration %v: must be 15s or more", cfg.Duration)
	}
	if cfg.Recovery == 0 {
		cfg.Recovery = time.Minute
	}
	if cfg.Progress == nil {
		cfg.Progress = func(string) {}
	}
	redis.SetLogger(silent{})
	folder, err := server.NewFolder("", "chaos")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, folder.Remove()) }()
	if err := os.Mkdir(filepath.Join(folder.Path(), "logs"), 0o700); err != nil {
		return nil, err
	}
	c := &cluster{cfg: cfg, folder: folder.Path(), followed: map[string]int{}}
	r := &run{
		cfg: cfg, cluster: c,
		chance: rand.New(rand.NewPCG(cfg.Seed, 1)),
		report: &Report{Topology: t.name, About: t.about, Expect: t.expect, Repeats: t.repeats, Seed: cfg.Seed, Began: time.Now()},
	}
	err = r.build(ctx, t)
	if err == nil {
		err = r.play(ctx)
	}
	err = errors.Join(err, c.close()) // all processes have ended: nothing is written any more
	if err == nil {
		err = r.judge(ctx, t)
	}
	if err != nil || r.report.Failed() {
		kept, move := r.keep()
		r.report.Kept = kept
		err = errors.Join(err, move)
		if err != nil {
			err = fmt.Errorf("topology %s, seed %d: %w (logs: %s)", t.name, cfg.Seed, err, kept)
		}
	}
	return r.report, err
}

// build starts servers and nodes.
func (r *run) build(ctx context.Context, t topologyDef) error {
	c := r.cluster
	began := time.Now()
	if err := t.build(ctx, c); err != nil {
		return err
	}
	if len(r.cfg.Only) > 0 {
		c.faults = slices.DeleteFunc(c.faults, func(f fault) bool {
			return !slices.ContainsFunc(r.cfg.Only, func(part string) bool { return strings.Contains(f.name, part) })
		})
		if len(c.faults) == 0 {
			return fmt.Errorf("topology %s has no fault with a name of %q", t.name, r.cfg.Only)
		}
	}
	if err := c.startAll(ctx); err != nil {
		return err
	}
	r.report.Versions = c.versions
	r.cfg.Progress(fmt.Sprintf("%s: servers and nodes started in %v; %d kinds of faults", t.name, time.Since(began).Round(100*time.Millisecond), len(c.faults)))
	return nil
}

// play runs clients and nemesis.
func (r *run) play(ctx context.Context) error {
	c := r.cluster
	r.begin = time.Now()
	layout := &fields{layout: snowflake.Leaf(), ahead: 15 * time.Second, behind: 75 * time.Second}
	for i, n := range c.nodes {
		for _, s := range streams(c.registry, c.strictTags(), i) {
			f := layout
			if s.space != "snowflake" {
				f = nil
			}
			l, err := newLog(filepath.Join(c.folder, "logs", "ids-"+n.name), n.name, s.name, f)
			if err != nil {
				return err
			}
			l.strict = s.strict
			cl, err := newClient(n, s, r.begin, l.write)
			if err != nil {
				return err
			}
			r.logs = append(r.logs, l)
			r.clients = append(r.clients, cl)
		}
	}
	var err error
	if r.apps, err = applications(c.nodes, c.strictTags(), r.begin); err != nil {
		return err
	}
	asking, stop := context.WithCancel(ctx)
	var all sync.WaitGroup
	for _, cl := range r.clients {
		all.Go(func() { cl.run(asking) })
	}
	for _, a := range r.apps {
		all.Go(func() { a.run(asking) })
	}
	var unwatched error
	all.Go(func() { unwatched = echo.Watch(asking, r.report.Machine.Took) })
	err = r.disturb(ctx)
	stop()
	all.Wait()
	err = errors.Join(err, unwatched)
	r.report.Ran = time.Since(r.begin)
	for _, a := range r.apps {
		l, failed := newLog(filepath.Join(c.folder, "logs", "ids-applications"), "applications", a.name, nil)
		if failed == nil {
			failed = a.write(l)
			r.logs = append(r.logs, l)
		}
		err = errors.Join(err, failed)
	}
	for _, l := range r.logs {
		err = errors.Join(err, l.close())
	}
	return err
}

// disturb waits until all clients are served, lets the nemesis loose, and ends with
// the calm.
func (r *run) disturb(ctx context.Context) error {
	if waiting := r.green(ctx, 0); waiting != "" {
		return fmt.Errorf("before any fault: %s\n%s", waiting, r.tails())
	}
	r.served = time.Since(r.begin)
	if r.cluster.database != nil {
		if err := r.cluster.takeDump(ctx); err != nil {
			return err
		}
	}
	if err := r.nemesis(ctx); err != nil {
		return fmt.Errorf("%w\n%s", err, r.tails())
	}
	if err := pause(ctx, max(calm, r.cfg.Duration-(time.Since(r.begin)-r.served))); err != nil {
		return err
	}
	for _, n := range r.cluster.nodes {
		if err := r.cluster.awaitModes(ctx, n); err != nil {
			r.report.check(false, "after the calm every node is ready: %v", err)
		}
	}
	return nil
}

// green waits until every client has been served by a request that was due after t,
// and says who was not in time.
func (r *run) green(ctx context.Context, t time.Duration) (waiting string) {
	err := poll(ctx, r.cfg.Recovery, func(context.Context) error {
		var not []string
		for _, c := range r.clients {
			if served, latest := c.servedSince(t); !served {
				not = append(not, fmt.Sprintf("%s at node %s (%s)", c.stream.name, c.node.name, latest))
			}
		}
		if not == nil {
			return nil
		}
		return fmt.Errorf("not served: %s", strings.Join(not, ", "))
	})
	if err != nil {
		return err.Error()
	}
	return ""
}

// tails are the ends of the nodes' logs.
func (r *run) tails() string {
	var b strings.Builder
	for _, n := range r.cluster.nodes {
		fmt.Fprintf(&b, "log of node %s:\n%s\n", n.name, n.tail())
	}
	return b.String()
}

// keep moves the logs out of the folder that is about to be removed.
func (r *run) keep() (string, error) {
	parent := r.cfg.Keep
	if parent == "" {
		parent = os.TempDir()
	}
	to := filepath.Join(parent, fmt.Sprintf("leaf-chaos-%s-%d-%s", r.cfg.Topology, r.cfg.Seed, time.Now().UTC().Format("150405")))
	from := filepath.Join(r.cluster.folder, "logs")
	if err := os.Rename(from, to); err == nil {
		return to, nil
	}
	return to, os.CopyFS(to, os.DirFS(from)) // another file system
}
