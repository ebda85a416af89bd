package server

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"
)

// Galera is a group of MariaDB servers that this process started and that all
// accept writes: a commit is certified by all before it is answered, and one of
// two that collide is refused. A node serves as long as it belongs to a majority,
// the primary component. It notices the death of another one after some 3
// seconds, during which commits wait.
//
// Its nodes are numbered from 0. Where a method takes nodes, none means all. The
// methods are safe for concurrent use; those that concern one node run one after
// the other.
type Galera struct {
	*fleet
	password string
	restarts sync.Mutex // held for as long as a Restart takes: it decides who bootstraps
}

// StartGalera starts that many nodes, at least one, with new data folders below
// parent, or in the system's temporary folder if that is empty. It returns when
// all nodes serve; ctx bounds the start only. The caller calls Close. For root
// the servers run as the user mysql, who must be able to enter parent. The error
// is ErrMissing if something is not installed.
func StartGalera(ctx context.Context, parent string, nodes int) (_ *Galera, err error) {
	const name = "galera"
	if nodes < 1 {
		return nil, fmt.Errorf("start %s: %d nodes: at least 1 is needed", name, nodes)
	}
	ctx, cancel := context.WithTimeout(ctx, galeraTimeout)
	defer cancel()
	g := &Galera{password: rand.Text()}
	defer func() {
		if err != nil {
			err = errors.Join(fmt.Errorf("start %s: %w", name, err), g.Close())
		}
	}()
	if g.fleet, err = newFleet(ctx, parent, name, nodes, galeraPorts, mariaDB{}.stopSignal()); err != nil {
		return nil, err
	}
	if err := g.install(ctx); err != nil {
		return nil, err
	}
	if err := g.Restart(ctx); err != nil {
		return nil, err
	}
	return g, nil
}

// install sets up the first node and makes the others copies of it, so that none
// has to be sent all of its data when it joins.
func (g *Galera) install(ctx context.Context) error {
	if err := os.Chmod(g.folder.path, 0o711); err != nil { //nolint:gosec // the user mysql goes through it
		return err
	}
	owner, err := galeraUser()
	if err != nil {
		return err
	}
	first := g.nodes[0].dir
	if err := (mariaDB{}).install(ctx, first, ""); err != nil {
		return err
	}
	if err := chownAll(owner, first); err != nil {
		return err
	}
	if err := g.launch(ctx, 0, bootstrap, "", mariaDB{}.first(g.nodes[0].ports[0].Number, "")); err != nil {
		return err
	}
	if err := (mariaDB{}).setUp(ctx, mariaDB{}.first(g.nodes[0].ports[0].Number, ""), g.password); err != nil {
		return err
	}
	g.Stop(0)
	if err := os.Remove(filepath.Join(first, "data", "galera.cache")); err != nil {
		return err
	}
	return g.copyFirst(func(dir string) error { return chownAll(owner, dir) })
}

// Database returns the database "leaf" on node i.
func (g *Galera) Database(i int) Database {
	return mariaDB{}.later(g.nodes[i].ports[0].Number, g.password)
}

// Restart starts the nodes again, on the same ports and data folders, after Kill
// or Stop, and returns when all of them serve with all that they missed. Those
// that still run are stopped first. They join the primary component; if none is
// left, because too many died at once, all nodes must be named, and the one that
// has committed the most begins a new one.
func (g *Galera) Restart(ctx context.Context, nodes ...int) error {
	ctx, cancel := context.WithTimeout(ctx, galeraTimeout)
	defer cancel()
	g.restarts.Lock()
	defer g.restarts.Unlock()
	if err := g.restart(ctx, g.all(nodes)); err != nil {
		return fmt.Errorf("restart: %w", err)
	}
	return nil
}

func (g *Galera) restart(ctx context.Context, nodes []int) error {
	g.Stop(nodes...)
	positions := make([]galeraPosition, g.Len())
	err := g.try(nodes, func(i int) (err error) {
		positions[i], err = g.recover(ctx, i)
		return err
	})
	if err != nil {
		return err
	}
	rejoin := func(i int) error {
		return g.launch(ctx, i, join, positions[i].argument(), g.Database(i))
	}
	if g.anyServes(ctx) {
		return g.try(nodes, rejoin)
	}
	if len(nodes) < g.Len() {
		return fmt.Errorf("no node of %s serves, and only the nodes %v were named: all are needed", g.title, nodes)
	}
	first := mostAdvanced(positions)
	if err := markSafe(g.nodes[first].dir); err != nil {
		return err
	}
	if err := g.launch(ctx, first, bootstrap, positions[first].argument(), g.Database(first)); err != nil {
		return fmt.Errorf("node %d of %s, which begins: %w", first, g.title, err)
	}
	var others []int
	for _, i := range nodes {
		if i != first {
			others = append(others, i)
		}
	}
	if len(others) == 0 {
		return nil
	}
	return g.try(others, rejoin)
}

// anyServes reports whether one node is left that others can join.
func (g *Galera) anyServes(ctx context.Context) bool {
	for i := range g.nodes {
		if _, err := g.view(ctx, g.Database(i)); err == nil {
			return true
		}
	}
	return false
}

// Wait returns when all the nodes serve, e.g. after Resume or Rejoin, and agree
// with every other one on who belongs to the group: a node that was away may not
// know it yet.
func (g *Galera) Wait(ctx context.Context, nodes ...int) error {
	err := until(ctx, func() error {
		var latest int64
		views := make([]int64, g.Len())
		errs := make([]error, g.Len())
		_ = g.try(nil, func(i int) error {
			views[i], errs[i] = g.view(ctx, g.Database(i))
			return nil
		})
		for _, v := range views {
			latest = max(latest, v)
		}
		for _, i := range g.all(nodes) {
			if errs[i] == nil && views[i] < latest {
				errs[i] = fmt.Errorf("it knows view %d of the group, not %d", views[i], latest)
			}
			if errs[i] != nil {
				return fmt.Errorf("node %d of %s: %w", i, g.title, errs[i])
			}
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("wait for %w", err)
	}
	return nil
}

// Isolate cuts node i off from the others, both ways, as a partition of the
// network would. Clients still reach it, and are refused once it has noticed.
func (g *Galera) Isolate(ctx context.Context, i int) error {
	return g.provider(ctx, i, "gmcast.isolate=1")
}

// Rejoin ends an Isolate. It does not wait for the node to serve again: see Wait.
func (g *Galera) Rejoin(ctx context.Context, i int) error {
	return g.provider(ctx, i, "gmcast.isolate=0")
}

func (g *Galera) provider(ctx context.Context, i int, option string) error {
	return g.Database(i).Named("").exec(ctx, "SET GLOBAL wsrep_provider_options = '"+option+"'")
}

// view returns the number of the last change of the group that a node knows. It
// is an error as long as the node is not ready, or not in step.
func (*Galera) view(ctx context.Context, d Database) (int64, error) {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	status, err := d.Named("").status(ctx, "wsrep_%")
	if err != nil {
		return 0, err
	}
	ready, state := status["wsrep_ready"], status["wsrep_local_state_comment"]
	if ready != "ON" || state != "Synced" || status["wsrep_cluster_status"] != "Primary" {
		return 0, fmt.Errorf("ready %s, state %s, component %s", ready, state, status["wsrep_cluster_status"])
	}
	return strconv.ParseInt(status["wsrep_cluster_conf_id"], 10, 64)
}

// launch starts node i and waits until it serves.
func (g *Galera) launch(ctx context.Context, i int, how galeraStart, position string, ask Database) error {
	command := func(ctx context.Context) (*exec.Cmd, error) { return g.command(ctx, i, how, position) }
	return g.run(ctx, i, command, func(ctx context.Context) error {
		_, err := g.view(ctx, ask)
		return err
	})
}

// recover returns how far a node has come that is down. After a crash it asks its
// storage engine.
func (g *Galera) recover(ctx context.Context, i int) (galeraPosition, error) {
	n := g.nodes[i]
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.closed {
		return galeraPosition{}, errClosed
	}
	if position, ok := cleanPosition(n.dir); ok {
		return position, nil
	}
	cmd, err := g.command(ctx, i, recovery, "")
	if err != nil {
		return galeraPosition{}, err
	}
	cmd.Dir, cmd.Env = n.dir, childEnvironment()
	dieWithParent(cmd.SysProcAttr)
	output, err := cmd.CombinedOutput()
	if err != nil {
		return galeraPosition{}, fmt.Errorf("recover the position: %w\n%s", err, output)
	}
	return parsePosition(output)
}

// command is node i itself.
func (g *Galera) command(ctx context.Context, i int, how galeraStart, position string) (*exec.Cmd, error) {
	return galeraCommand(ctx, g.nodes[i], g.folder.path, g.peers(1), how, position)
}
