package server

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
)

// ErrNoNetwork means that this process may not make networks: it is not root,
// the container forbids it, or the system is not Linux.
var ErrNoNetwork = errors.New("not allowed to make a network")

// loopback is where servers listen that have no network of their own.
const loopback = "127.0.0.1"

func address(port int) string { return net.JoinHostPort(loopback, strconv.Itoa(port)) }

// Sever makes all that node from sends to node to vanish, until Heal. The other
// direction is left as it is: a partition that is to be both ways takes two
// calls, or Partition. Clients are not concerned. The error is ErrNoNetwork if
// the nodes were not started apart.
func (e *Ensemble) Sever(ctx context.Context, from, to int) error {
	if e.network == nil {
		return fmt.Errorf("sever node %d from %d of %s: not started apart: %w", to, from, e.title, ErrNoNetwork)
	}
	if err := e.network.sever(ctx, from, to); err != nil {
		return fmt.Errorf("sever node %d from %d of %s: %w", to, from, e.title, err)
	}
	return nil
}

// Partition severs the nodes from all others, both ways.
func (e *Ensemble) Partition(ctx context.Context, nodes ...int) error {
	inside := make([]bool, e.Len())
	for _, i := range nodes {
		inside[i] = true
	}
	for from := range inside {
		for to := range inside {
			if inside[from] == inside[to] {
				continue
			}
			if err := e.Sever(ctx, from, to); err != nil {
				return err
			}
		}
	}
	return nil
}

// Heal ends all of Sever and Partition. It does not wait for the nodes to serve
// again: see Wait.
func (e *Ensemble) Heal(ctx context.Context) error {
	if e.network == nil {
		return nil
	}
	if err := e.network.heal(ctx); err != nil {
		return fmt.Errorf("heal the network of %s: %w", e.title, err)
	}
	return nil
}
