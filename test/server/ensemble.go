package server

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Ensemble is a ZooKeeper or etcd of one or more nodes that this process
// started. Its nodes are numbered from 0.
//
// Its methods are safe for concurrent use; those that concern one node run one
// after the other. Where a method takes nodes, none means all. A number that the
// ensemble does not have panics.
type Ensemble struct {
	kind    registry
	folder  *Folder
	members []member
	nodes   []*node
}

// member is what all nodes of an ensemble know of one: its folder and its
// ports, of which the first is the one for clients.
type member struct {
	dir   string
	ports []int
}

// node is one server of an ensemble.
type node struct {
	ports []*port

	mu     sync.Mutex
	daemon daemon
	closed bool
}

// StartZooKeeper starts a ZooKeeper of that many nodes, at least one, with a new
// data folder below parent, or in the system's temporary folder if that is
// empty. It returns when all nodes serve; ctx bounds the start only. The caller
// calls Close. The error is ErrMissing if ZooKeeper or Java is not installed.
func StartZooKeeper(ctx context.Context, parent string, nodes int) (*Ensemble, error) {
	return startEnsemble(ctx, zooKeeper{}, parent, nodes)
}

// StartEtcd is StartZooKeeper for etcd.
func StartEtcd(ctx context.Context, parent string, nodes int) (*Ensemble, error) {
	return startEnsemble(ctx, etcd{}, parent, nodes)
}

func startEnsemble(ctx context.Context, kind registry, parent string, nodes int) (_ *Ensemble, err error) {
	if nodes < 1 {
		return nil, fmt.Errorf("start %s: %d nodes: at least 1 is needed", kind.name(), nodes)
	}
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	folder, err := NewFolder(parent, kind.name())
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", kind.name(), err)
	}
	e := &Ensemble{kind: kind, folder: folder}
	defer func() {
		if err != nil {
			err = errors.Join(fmt.Errorf("start %s: %w", kind.name(), err), e.Close())
		}
	}()
	for n := range nodes {
		dir := filepath.Join(folder.path, "node-"+strconv.Itoa(n))
		if err := os.Mkdir(dir, 0o700); err != nil {
			return nil, err
		}
		this := &node{daemon: daemon{dir: dir, stopSignal: kind.stopSignal()}}
		e.nodes = append(e.nodes, this)
		e.members = append(e.members, member{dir: dir})
		for range kind.ports() {
			p, err := claimPort(ctx)
			if err != nil {
				return nil, err
			}
			this.ports = append(this.ports, p)
			e.members[n].ports = append(e.members[n].ports, p.number)
		}
	}
	for n := range e.nodes {
		if err := kind.install(n, e.members); err != nil {
			return nil, err
		}
	}
	if err := e.Restart(ctx); err != nil {
		return nil, err
	}
	return e, nil
}

// Len returns the number of nodes.
func (e *Ensemble) Len() int { return len(e.nodes) }

// Addr returns the host and port at which node i serves clients, e.g. as a
// proxy's target. It never changes.
func (e *Ensemble) Addr(i int) string { return address(e.members[i].ports[0]) }

// Servers returns the addresses of all nodes, by number.
func (e *Ensemble) Servers() []string {
	addrs := make([]string, e.Len())
	for i := range addrs {
		addrs[i] = e.Addr(i)
	}
	return addrs
}

// Kill ends the nodes with SIGKILL, as a crash would, and returns when they are
// gone.
func (e *Ensemble) Kill(nodes ...int) {
	e.each(nodes, func(n *node) { n.daemon.kill() })
}

// Stop ends the nodes in an orderly way, without waiting for their sessions, and
// returns when they are gone.
func (e *Ensemble) Stop(nodes ...int) {
	e.each(nodes, func(n *node) { n.daemon.stop() })
}

// Pause freezes the nodes with SIGSTOP: their connections stay open, and nothing
// answers.
func (e *Ensemble) Pause(nodes ...int) {
	e.each(nodes, func(n *node) { n.daemon.freeze() })
}

// Resume ends a Pause. It does not wait for the nodes to serve again: see Wait.
func (e *Ensemble) Resume(nodes ...int) {
	e.each(nodes, func(n *node) { n.daemon.thaw() })
}

// Restart starts the nodes again, on the same ports and data folders, after Kill
// or Stop, and returns as soon as all of them serve. Those that still run are
// stopped first. A node serves only with a majority: where several are needed
// for one, they must be named in one call.
func (e *Ensemble) Restart(ctx context.Context, nodes ...int) error {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	var mu sync.Mutex
	var errs []error
	var wait sync.WaitGroup
	for _, i := range e.all(nodes) {
		wait.Go(func() {
			if err := e.restart(ctx, i); err != nil {
				mu.Lock()
				defer mu.Unlock()
				errs = append(errs, fmt.Errorf("restart node %d of %s: %w", i, e.kind.name(), err))
			}
		})
	}
	wait.Wait()
	return errors.Join(errs...)
}

func (e *Ensemble) restart(ctx context.Context, i int) error {
	n := e.nodes[i]
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.closed {
		return errors.New("it is closed")
	}
	n.daemon.stop()
	cmd, err := e.kind.command(context.WithoutCancel(ctx), i, e.members)
	if err != nil {
		return err
	}
	if err := n.daemon.launch(cmd); err != nil {
		return err
	}
	return n.daemon.await(ctx, func(ctx context.Context) error {
		_, err := e.kind.leads(ctx, e.Addr(i))
		return err
	})
}

// Wait returns when all the nodes serve, e.g. after Resume or an election.
func (e *Ensemble) Wait(ctx context.Context, nodes ...int) error {
	return e.poll(ctx, func() error {
		for _, i := range e.all(nodes) {
			if _, err := e.kind.leads(ctx, e.Addr(i)); err != nil {
				return fmt.Errorf("wait for node %d of %s: %w", i, e.kind.name(), err)
			}
		}
		return nil
	})
}

// Leader returns the number of the node that leads, and waits for an election
// if none does. A deposed leader that does not know it yet is not mistaken for
// the leader while its successor answers.
func (e *Ensemble) Leader(ctx context.Context) (int, error) {
	leader := -1
	err := e.poll(ctx, func() error {
		claims := e.claims(ctx)
		if len(claims) != 1 {
			return fmt.Errorf("nodes of %s that say they lead: %v, want one", e.kind.name(), claims)
		}
		leader = claims[0]
		return nil
	})
	return leader, err
}

// claims returns the nodes that say they lead. They are asked at once, because
// a frozen one does not answer.
func (e *Ensemble) claims(ctx context.Context) []int {
	says := make([]bool, e.Len())
	var wait sync.WaitGroup
	for i := range says {
		wait.Go(func() { says[i], _ = e.kind.leads(ctx, e.Addr(i)) }) // who does not answer does not lead
	}
	wait.Wait()
	var claims []int
	for i, yes := range says {
		if yes {
			claims = append(claims, i)
		}
	}
	return claims
}

// Close stops all nodes and removes their data. It is idempotent.
func (e *Ensemble) Close() error {
	e.each(nil, func(n *node) {
		n.closed = true
		n.daemon.stop()
		for _, p := range n.ports {
			p.release()
		}
	})
	return e.folder.Remove()
}

// String names the ensemble in messages.
func (e *Ensemble) String() string { return e.kind.name() + " " + strings.Join(e.Servers(), ",") }

// all returns the nodes that a method means.
func (e *Ensemble) all(nodes []int) []int {
	if len(nodes) > 0 {
		return nodes
	}
	nodes = make([]int, e.Len())
	for i := range nodes {
		nodes[i] = i
	}
	return nodes
}

// each does the same to several nodes at once: stopped one by one, the last ones
// would hold an election first.
func (e *Ensemble) each(nodes []int, do func(*node)) {
	var wait sync.WaitGroup
	for _, i := range slices.Compact(slices.Sorted(slices.Values(e.all(nodes)))) {
		n := e.nodes[i]
		wait.Go(func() {
			n.mu.Lock()
			defer n.mu.Unlock()
			do(n)
		})
	}
	wait.Wait()
}

// poll asks until there is no error, and returns the last one if ctx ends first.
func (*Ensemble) poll(ctx context.Context, ask func() error) error {
	tick := time.NewTicker(pollEvery)
	defer tick.Stop()
	for {
		err := ask()
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%w: %w", ctx.Err(), err)
		case <-tick.C:
		}
	}
}
