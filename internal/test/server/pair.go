package server

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"sync"
)

// Pair is a primary database and its standby, which this process started and
// which can change places. A commit on the primary is answered when the standby
// has it too; without a standby it waits, until Detach.
//
// Node 0 is the primary at first and node 1 the standby. Where a method takes
// nodes, none means both. The methods are safe for concurrent use; those that
// change who is what run one after the other.
//
//	clean failover: p.Kill(p.Primary()); p.Promote(ctx)
//	lossy failover: p.Detach(ctx); commits; p.Kill(p.Primary()); p.Promote(ctx)
//	split brain:    p.Detach(ctx); p.Promote(ctx)
//
// Promote leaves the former primary as it is: after a split brain it goes on
// accepting writes, and clients decide by their addresses whom they see. Clients
// that are to find the primary at one address go through a proxy whose target
// is changed.
type Pair struct {
	*fleet
	kind     pairKind
	link     func(target string) (string, error)
	password string

	change sync.Mutex // held for as long as a change of roles takes

	mu       sync.Mutex
	primary  int
	detached bool  // the standby receives nothing
	parted   bool  // the other node is no standby but a former primary
	position int64 // up to which the primary had followed it
}

// PairOptions change how a pair is started. The zero value is ready to use.
type PairOptions struct {
	// Link is asked for each address at which a standby is about to reach its
	// primary, and returns the one to use, e.g. that of a proxy in between. nil
	// means directly.
	Link func(target string) (addr string, err error)
}

// StartMariaDBPair starts two MariaDB servers with semi-synchronous replication,
// with new data folders below parent, or in the system's temporary folder if
// that is empty. It returns when the standby is waited for; ctx bounds the start
// only. The caller calls Close. The error is ErrMissing if MariaDB is not
// installed.
func StartMariaDBPair(ctx context.Context, parent string, o PairOptions) (*Pair, error) {
	return startPair(ctx, mariaDBPair{}, parent, o)
}

// StartPostgresPair is StartMariaDBPair for PostgreSQL with synchronous streaming
// replication. For root the servers run as the user postgres, who must be able
// to enter parent.
func StartPostgresPair(ctx context.Context, parent string, o PairOptions) (*Pair, error) {
	return startPair(ctx, postgresPair{}, parent, o)
}

func startPair(ctx context.Context, kind pairKind, parent string, o PairOptions) (_ *Pair, err error) {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	p := &Pair{kind: kind, link: o.Link, password: rand.Text()}
	if p.link == nil {
		p.link = func(target string) (string, error) { return target, nil }
	}
	defer func() {
		if err != nil {
			err = errors.Join(fmt.Errorf("start %s: %w", kind.name(), err), p.Close())
		}
	}()
	if p.fleet, err = newFleet(ctx, parent, kind.name(), 2, 1, kind.stopSignal()); err != nil {
		return nil, err
	}
	if err := os.Chmod(p.folder.path, 0o711); err != nil { //nolint:gosec // servers of other users go through it
		return nil, err
	}
	if err := kind.install(ctx, p.nodes[0].dir, p.password); err != nil {
		return nil, err
	}
	if err := p.launch(ctx, 0, alone, kind.installed); err != nil {
		return nil, err
	}
	if err := kind.setUp(ctx, p.Addr(0), p.password); err != nil {
		return nil, err
	}
	if err := p.addStandby(ctx, 1); err != nil {
		return nil, err
	}
	return p, nil
}

// Primary returns the number of the node that was promoted last, 0 at first.
func (p *Pair) Primary() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.primary
}

// Database returns the database "leaf" on node i. On MariaDB its user has no
// rights on the server, so that a standby refuses its writes.
func (p *Pair) Database(i int) Database { return p.kind.client(p.Addr(i), p.password) }

// Restart starts the nodes again as what they were, on the same ports and data
// folders, after Kill or Stop, and returns when they answer queries. Those that
// still run are stopped first. A former primary comes back writable.
func (p *Pair) Restart(ctx context.Context, nodes ...int) error {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	p.change.Lock()
	defer p.change.Unlock()
	if err := p.try(nodes, func(i int) error { return p.launch(ctx, i, p.role(i), p.kind.admin) }); err != nil {
		return fmt.Errorf("restart: %w", err)
	}
	return nil
}

// Wait returns when the primary answers queries and its standby keeps up, e.g.
// after Restart or Resume. While there is no standby, after Detach or Promote,
// only the primary is waited for.
func (p *Pair) Wait(ctx context.Context) error {
	err := until(ctx, func() error {
		leader := p.Primary()
		admin := p.admin(leader)
		if p.complete() {
			return p.kind.attached(ctx, admin, p.admin(1-leader), true)
		}
		_, err := admin.Version(ctx)
		return err
	})
	if err != nil {
		return fmt.Errorf("wait for %s: %w", p, err)
	}
	return nil
}

// addStandby makes node i, whose folder is empty, the standby.
func (p *Pair) addStandby(ctx context.Context, i int) error {
	leader := 1 - i
	from, err := p.link(p.Addr(leader))
	if err != nil {
		return err
	}
	if err := p.kind.clone(ctx, p.nodes[i].dir, from, p.password); err != nil {
		return err
	}
	if err := p.launch(ctx, i, standby, p.kind.installed); err != nil {
		return err
	}
	if err := p.kind.follow(ctx, p.Addr(i), from, p.password); err != nil {
		return err
	}
	return p.join(ctx, leader)
}

// join makes the primary wait for its standby, and waits until that has caught
// up.
func (p *Pair) join(ctx context.Context, leader int) error {
	admin, follower := p.admin(leader), p.admin(1-leader)
	if err := until(ctx, func() error { return p.kind.attached(ctx, admin, follower, false) }); err != nil {
		return err
	}
	if err := p.kind.synchronous(ctx, admin, true); err != nil {
		return err
	}
	p.mu.Lock()
	p.detached, p.parted = false, false
	p.mu.Unlock()
	if err := until(ctx, func() error { return p.kind.attached(ctx, admin, follower, true) }); err != nil {
		return err
	}
	target, err := p.kind.position(ctx, admin)
	if err != nil {
		return err
	}
	return until(ctx, func() error {
		position, err := p.kind.position(ctx, follower)
		if err == nil && position < target {
			err = fmt.Errorf("the standby is at transaction %d of %d", position, target)
		}
		return err
	})
}

// launch starts node i, and stops it first if it runs.
func (p *Pair) launch(ctx context.Context, i int, r role, ask func(addr, password string) Database) error {
	return p.launchAt(ctx, i, p.nodes[i].ports[0].Number, r, ask)
}

func (p *Pair) launchAt(ctx context.Context, i, port int, r role, ask func(addr, password string) Database) error {
	command := func(ctx context.Context) (*exec.Cmd, error) { return p.kind.command(ctx, p.nodes[i].dir, port, r) }
	d := ask(address(port), p.password)
	return p.run(ctx, i, command, func(ctx context.Context) error {
		_, err := d.Version(ctx)
		return err
	})
}

func (p *Pair) admin(i int) Database { return p.kind.admin(p.Addr(i), p.password) }

// complete reports whether the standby is one that is waited for.
func (p *Pair) complete() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return !p.detached && !p.parted
}

func (p *Pair) role(i int) role {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.parted, i == p.primary && p.detached:
		return alone
	case i == p.primary:
		return leading
	case p.detached:
		return detached
	default:
		return standby
	}
}

func (p *Pair) running(i int) bool {
	n := p.nodes[i]
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.daemon.process == nil {
		return false
	}
	select {
	case <-n.daemon.process.done:
		return false
	default:
		return true
	}
}
