package server

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"sync"
)

// Ensemble is a ZooKeeper or etcd of one or more nodes that this process
// started. Its nodes are numbered from 0.
//
// Its methods are safe for concurrent use; those that concern one node run one
// after the other. Where a method takes nodes, none means all. A number that the
// ensemble does not have panics.
type Ensemble struct {
	*fleet
	kind    registry
	members []member
}

// member is what all nodes of an ensemble know of one: its folder, and its
// addresses, of which the first is the one for clients.
type member struct {
	dir   string
	addrs []string
}

// StartZooKeeper starts a ZooKeeper of that many nodes, at least one, with a new
// data folder below parent, or in the system's temporary folder if that is
// empty. It returns when all nodes serve; ctx bounds the start only. The caller
// calls Close. The error is ErrMissing if ZooKeeper or Java is not installed.
func StartZooKeeper(ctx context.Context, parent string, nodes int) (*Ensemble, error) {
	return startEnsemble(ctx, zooKeeper{}, parent, nodes, false)
}

// StartEtcd is StartZooKeeper for etcd.
func StartEtcd(ctx context.Context, parent string, nodes int) (*Ensemble, error) {
	return startEnsemble(ctx, etcd{}, parent, nodes, false)
}

// StartZooKeeperApart is StartZooKeeper with each node in a network namespace of
// its own, so that Sever and Partition can cut them off from one another. The
// error is ErrNoNetwork where that is not allowed.
func StartZooKeeperApart(ctx context.Context, parent string, nodes int) (*Ensemble, error) {
	return startEnsemble(ctx, zooKeeper{}, parent, nodes, true)
}

// StartEtcdApart is StartZooKeeperApart for etcd.
func StartEtcdApart(ctx context.Context, parent string, nodes int) (*Ensemble, error) {
	return startEnsemble(ctx, etcd{}, parent, nodes, true)
}

func startEnsemble(ctx context.Context, kind registry, parent string, nodes int, apart bool) (_ *Ensemble, err error) {
	if nodes < 1 {
		return nil, fmt.Errorf("start %s: %d nodes: at least 1 is needed", kind.name(), nodes)
	}
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	e := &Ensemble{kind: kind}
	defer func() {
		if err != nil {
			err = errors.Join(fmt.Errorf("start %s: %w", kind.name(), err), e.Close())
		}
	}()
	if e.fleet, err = newFleet(ctx, parent, kind.name(), nodes, kind.ports(), kind.stopSignal()); err != nil {
		return nil, err
	}
	if apart {
		if e.network, err = newNetwork(ctx, nodes); err != nil {
			return nil, err
		}
	}
	for i, n := range e.nodes {
		m := member{dir: n.dir}
		for p := range n.ports {
			m.addrs = append(m.addrs, e.addr(i, p))
		}
		e.members = append(e.members, m)
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

// Restart starts the nodes again, on the same ports and data folders, after Kill
// or Stop, and returns as soon as all of them serve. Those that still run are
// stopped first. A node serves only with a majority: where several are needed
// for one, they must be named in one call.
func (e *Ensemble) Restart(ctx context.Context, nodes ...int) error {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	if err := e.try(nodes, func(i int) error { return e.restart(ctx, i) }); err != nil {
		return fmt.Errorf("restart: %w", err)
	}
	return nil
}

func (e *Ensemble) restart(ctx context.Context, i int) error {
	command := func(ctx context.Context) (*exec.Cmd, error) {
		cmd, err := e.kind.command(ctx, i, e.members)
		if err == nil && e.network != nil {
			cmd = e.network.enter(ctx, i, cmd)
		}
		return cmd, err
	}
	return e.run(ctx, i, command, func(ctx context.Context) error {
		_, err := e.kind.leads(ctx, e.Addr(i))
		return err
	})
}

// Wait returns when all the nodes serve, e.g. after Resume or an election.
func (e *Ensemble) Wait(ctx context.Context, nodes ...int) error {
	return until(ctx, func() error {
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
	err := until(ctx, func() error {
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
