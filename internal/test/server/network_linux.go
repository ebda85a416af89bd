package server

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
)

// network joins the nodes of a group and this machine by a bridge. Each node
// lives in a network namespace of its own, the bridge in a further one, and all
// of them vanish with the processes that hold them, and with them the one
// interface that this machine sees.
//
//	this machine: leaf<n>, .254 -- bridge -- node i: eth0, .<i+1>
//
// What a node sends to another is lost when it believes that other to be at a
// hardware address that nobody has: only this direction, and without a word.
type network struct {
	number  int        // of the subnet
	holders []*process // of the bridge's namespace, and of each node's
}

// subnets are those of 198.18.0.0/15, which is reserved for tests of networks.
const subnets = 512

func newNetwork(ctx context.Context, nodes int) (_ *network, err error) {
	w := &network{number: -1}
	defer func() {
		if err != nil {
			w.close()
		}
	}()
	for range nodes + 1 {
		cmd := exec.CommandContext(context.WithoutCancel(ctx), "sleep", "infinity")
		cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET}
		holder, err := startProcess(cmd)
		if errors.Is(err, syscall.EPERM) {
			return nil, fmt.Errorf("%w (%w): run as root, in a container with CAP_SYS_ADMIN", ErrNoNetwork, err)
		}
		if err != nil {
			return nil, err
		}
		w.holders = append(w.holders, holder)
	}
	if err := w.connect(ctx); err != nil {
		return nil, err
	}
	bridge := []string{"link add bridge type bridge", "link set bridge up", "link set uplink master bridge up"}
	for i := range nodes {
		bridge = append(bridge,
			fmt.Sprintf("link add node%d type veth peer name eth0 netns %d", i, w.pid(i)),
			fmt.Sprintf("link set node%d master bridge up", i))
	}
	if err := w.ip(ctx, w.holders[0], bridge...); err != nil {
		return nil, err
	}
	for i := range nodes {
		err := w.ip(ctx, w.holders[i+1],
			"link set lo up", "link set eth0 address "+hardware(i)+" up", "addr add "+w.host(i)+"/24 dev eth0")
		if err != nil {
			return nil, err
		}
	}
	return w, w.heal(ctx)
}

// connect makes the interface on this machine. Its name says the subnet, so that
// no two processes choose the same one.
func (w *network) connect(ctx context.Context) error {
	const tries = 20
	var err error
	for range tries {
		number := rand.N(subnets)
		name := link(number)
		if err = w.ip(ctx, nil, fmt.Sprintf("link add %s type veth peer name uplink netns %d", name, w.holders[0].cmd.Process.Pid)); err == nil {
			w.number = number
			return w.ip(ctx, nil, "link set "+name+" up", "addr add "+w.address(254)+"/24 dev "+name)
		}
	}
	return fmt.Errorf("find a free subnet: %w", err)
}

func link(number int) string { return "leaf" + strconv.Itoa(number) }

// host returns the address of node i.
func (w *network) host(i int) string { return w.address(i + 1) }

func (w *network) address(last int) string {
	return fmt.Sprintf("198.%d.%d.%d", 18+w.number/256, w.number%256, last)
}

func hardware(i int) string { return fmt.Sprintf("02:00:00:00:00:%02x", i+1) }

// nobody is a hardware address that no node has.
const nobody = "02:00:00:00:00:ff"

func (w *network) pid(i int) int { return w.holders[i+1].cmd.Process.Pid }

// enter makes cmd a command of node i. What is started in between replaces
// itself, so that signals reach the server.
func (w *network) enter(ctx context.Context, i int, cmd *exec.Cmd) *exec.Cmd {
	return exec.CommandContext(ctx, "nsenter", append([]string{"--net=" + w.namespace(w.holders[i+1]), "--"}, cmd.Args...)...)
}

func (*network) namespace(holder *process) string {
	return fmt.Sprintf("/proc/%d/ns/net", holder.cmd.Process.Pid)
}

func (w *network) sever(ctx context.Context, from, to int) error {
	return w.ip(ctx, w.holders[from+1], w.neighbour(to, nobody))
}

func (w *network) heal(ctx context.Context) error {
	for from, holder := range w.holders[1:] {
		var lines []string
		for to := range w.holders[1:] {
			if to != from {
				lines = append(lines, w.neighbour(to, hardware(to)))
			}
		}
		if err := w.ip(ctx, holder, lines...); err != nil {
			return err
		}
	}
	return nil
}

func (w *network) neighbour(to int, at string) string {
	return "neigh replace " + w.host(to) + " lladdr " + at + " nud permanent dev eth0"
}

// ip configures a namespace, that of this machine without a holder.
func (w *network) ip(ctx context.Context, holder *process, lines ...string) error {
	tool, err := find("ip", "iproute2")
	if err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, tool, "-batch", "-")
	if holder != nil {
		cmd = exec.CommandContext(ctx, "nsenter", "--net="+w.namespace(holder), "--", tool, "-batch", "-")
	}
	cmd.Stdin = strings.NewReader(strings.Join(lines, "\n") + "\n")
	return runTool(cmd, os.TempDir())
}

// close removes the network, after the servers in it were stopped. The interface
// would vanish by itself, but later.
func (w *network) close() {
	if w == nil {
		return
	}
	if w.number >= 0 {
		_ = w.ip(context.Background(), nil, "link del "+link(w.number))
		w.number = -1
	}
	for _, holder := range w.holders {
		holder.kill()
	}
	w.holders = nil
}
