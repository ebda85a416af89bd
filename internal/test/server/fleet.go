package server

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/leaf-idgen/leaf/internal/test/port"
)

// nodePrefix begins the names of the nodes' folders.
const nodePrefix = "node-"

// fleet is what all groups of servers have in common. Its nodes are numbered
// from 0.
//
// Its methods are safe for concurrent use; those that concern one node run one
// after the other. Where a method takes nodes, none means all. A number that the
// group does not have panics.
type fleet struct {
	title  string // for messages and folders
	folder *Folder
	nodes  []*node
	// network is that of nodes which can be cut off from one another, else nil.
	network *network
}

// node is one server of a group. Of its ports the first is the one for clients.
type node struct {
	dir   string
	ports []*port.Port

	mu     sync.Mutex
	daemon daemon
	closed bool
}

// newFleet makes a folder below parent, and in it one for each node. After an
// error the caller still closes what it got.
func newFleet(ctx context.Context, parent, title string, nodes, ports int, stop syscall.Signal) (*fleet, error) {
	folder, err := NewFolder(parent, title)
	if err != nil {
		return nil, err
	}
	f := &fleet{title: title, folder: folder}
	for n := range nodes {
		dir := filepath.Join(folder.path, nodePrefix+strconv.Itoa(n))
		if err := os.Mkdir(dir, 0o700); err != nil {
			return f, err
		}
		this := &node{dir: dir, daemon: daemon{dir: dir, stopSignal: stop}}
		f.nodes = append(f.nodes, this)
		for range ports {
			p, err := port.Claim(ctx)
			if err != nil {
				return f, err
			}
			this.ports = append(this.ports, p)
		}
	}
	return f, nil
}

// Len returns the number of nodes.
func (f *fleet) Len() int { return len(f.nodes) }

// Addr returns the host and port at which node i serves clients, e.g. as a
// proxy's target. It never changes.
func (f *fleet) Addr(i int) string { return f.addr(i, 0) }

// addr returns the address of one of the node's ports.
func (f *fleet) addr(i, which int) string {
	host := loopback
	if f.network != nil {
		host = f.network.host(i)
	}
	return net.JoinHostPort(host, strconv.Itoa(f.nodes[i].ports[which].Number))
}

// Servers returns the addresses of all nodes, by number.
func (f *fleet) Servers() []string {
	addrs := make([]string, f.Len())
	for i := range addrs {
		addrs[i] = f.Addr(i)
	}
	return addrs
}

// String names the group in messages.
func (f *fleet) String() string { return f.title + " " + strings.Join(f.Servers(), ",") }

// Kill ends the nodes with SIGKILL, as a crash would, and returns when they are
// gone.
func (f *fleet) Kill(nodes ...int) {
	f.each(nodes, func(n *node) { n.daemon.kill() })
}

// Stop ends the nodes in an orderly way, without waiting for their sessions, and
// returns when they are gone.
func (f *fleet) Stop(nodes ...int) {
	f.each(nodes, func(n *node) { n.daemon.stop() })
}

// Pause freezes the nodes with SIGSTOP: their connections stay open, and nothing
// answers.
func (f *fleet) Pause(nodes ...int) {
	f.each(nodes, func(n *node) { n.daemon.freeze() })
}

// Resume ends a Pause. It does not wait for the nodes to serve again: see Wait.
func (f *fleet) Resume(nodes ...int) {
	f.each(nodes, func(n *node) { n.daemon.thaw() })
}

// Close stops all nodes and removes their data. It is idempotent.
func (f *fleet) Close() error {
	if f == nil {
		return nil
	}
	f.each(nil, func(n *node) {
		n.closed = true
		n.daemon.stop()
		for _, p := range n.ports {
			p.Release()
		}
	})
	f.network.close()
	return f.folder.Remove()
}

// all returns the nodes that a method means.
func (f *fleet) all(nodes []int) []int {
	if len(nodes) == 0 {
		nodes = make([]int, f.Len())
		for i := range nodes {
			nodes[i] = i
		}
	}
	return slices.Compact(slices.Sorted(slices.Values(nodes)))
}

// each does the same to several nodes at once: stopped one by one, the last ones
// would hold an election first.
func (f *fleet) each(nodes []int, do func(*node)) {
	_ = f.try(nodes, func(i int) error {
		n := f.nodes[i]
		n.mu.Lock()
		defer n.mu.Unlock()
		do(n)
		return nil
	})
}

// try does something with several nodes at once, and names the nodes where it
// failed.
func (f *fleet) try(nodes []int, do func(i int) error) error {
	var mu sync.Mutex
	var errs []error
	var wait sync.WaitGroup
	for _, i := range f.all(nodes) {
		wait.Go(func() {
			if err := do(i); err != nil {
				mu.Lock()
				defer mu.Unlock()
				errs = append(errs, fmt.Errorf("node %d of %s: %w", i, f.title, err))
			}
		})
	}
	wait.Wait()
	return errors.Join(errs...)
}

// run starts node i by what command returns, and returns when ask has no error. The
// context of command outlives ctx, as the node does. A node that still runs is stopped first.
func (f *fleet) run(ctx context.Context, i int, command func(ctx context.Context) (*exec.Cmd, error), ask func(ctx context.Context) error) error {
	n := f.nodes[i]
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.closed {
		return errClosed
	}
	n.daemon.stop()
	cmd, err := command(context.WithoutCancel(ctx))
	if err != nil {
		return err
	}
	if err := n.daemon.launch(cmd); err != nil {
		return err
	}
	return n.daemon.await(ctx, ask)
}

// copyFirst makes the data of the other nodes copies of the first node's, and finishes each.
func (f *fleet) copyFirst(finish func(dir string) error) error {
	first := f.nodes[0].dir
	return f.try(nil, func(i int) error {
		dir := f.nodes[i].dir
		if i == 0 {
			return nil
		}
		for _, part := range []string{"data", "tmp"} {
			if err := os.CopyFS(filepath.Join(dir, part), os.DirFS(filepath.Join(first, part))); err != nil {
				return err
			}
		}
		return finish(dir)
	})
}

// peers returns the addresses of all nodes at one of their ports.
func (f *fleet) peers(which int) string {
	var addrs []string
	for i := range f.nodes {
		addrs = append(addrs, f.addr(i, which))
	}
	return strings.Join(addrs, ",")
}

// errClosed is the answer to whoever starts a node of a group that was closed.
var errClosed = errors.New("it is closed")

// groupPollEvery is longer than pollEvery: several nodes are asked, and what they
// are asked for takes longer than the first answer of one server.
const groupPollEvery = 20 * time.Millisecond

// until asks until there is no error. If ctx ends first it returns the last one
// that ctx has not caused.
func until(ctx context.Context, ask func() error) error {
	tick := time.NewTicker(groupPollEvery)
	defer tick.Stop()
	var last error
	for {
		err := ask()
		if err == nil {
			return nil
		}
		if last == nil || ctx.Err() == nil {
			last = err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%w: %w", ctx.Err(), last)
		case <-tick.C:
		}
	}
}
