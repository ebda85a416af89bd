package client

import (
	"context"
	"fmt"
	"net"
	"slices"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/discovery"
)

// Resolver knows the nodes of a cluster. A discovery.Directory is one.
type Resolver interface {
	// List returns all nodes. It ends with ctx, and is called by one goroutine. After
	// an error, a panic or an empty list, the client goes on with the last one that it had.
	List(ctx context.Context) ([]discovery.Node, error)
}

// Nodes is a fixed list of nodes with zones and weights.
func Nodes(nodes ...discovery.Node) Resolver { return fixed(slices.Clone(nodes)) }

// Addresses is a fixed list of gRPC addresses, HOST:PORT, without zones, of equal weight.
func Addresses(addresses ...string) Resolver {
	list := make(fixed, 0, len(addresses))
	for _, a := range addresses {
		list = append(list, discovery.Node{ID: a, Weight: discovery.DefaultWeight, GRPC: a})
	}
	return list
}

type fixed []discovery.Node

// List implements Resolver.
func (f fixed) List(context.Context) ([]discovery.Node, error) { return f, nil }

// check refuses at once what cannot become better.
func (f fixed) check() error {
	if len(f) == 0 {
		return leaf.BadField("nodes", "", "must name at least one node")
	}
	for _, n := range f {
		if err := checkNode(n); err != nil {
			return err
		}
	}
	return nil
}

// DNS is all addresses of a name, asked again with every refresh, without zones, of
// equal weight; e.g. "leaf.default.svc:9090", a headless service of Kubernetes.
func DNS(address string) Resolver { return byName(address) }

type byName string

// List implements Resolver.
func (d byName) List(ctx context.Context) ([]discovery.Node, error) {
	host, port, err := net.SplitHostPort(string(d))
	if err != nil {
		return nil, leaf.BadField("address", string(d), "must be NAME:PORT")
	}
	found, err := net.DefaultResolver.LookupHost(ctx, host)
	if err != nil {
		return nil, fmt.Errorf("look up %q: %w", host, err)
	}
	slices.Sort(found)
	addresses := make([]string, 0, len(found))
	for _, ip := range slices.Compact(found) {
		addresses = append(addresses, net.JoinHostPort(ip, port))
	}
	return Addresses(addresses...).List(ctx)
}

func (d byName) check() error {
	host, port, err := net.SplitHostPort(string(d))
	if err != nil || host == "" || port == "" {
		return leaf.BadField("address", string(d), "must be NAME:PORT")
	}
	return nil
}

// checkNode says why a client cannot use n.
func checkNode(n discovery.Node) error {
	if n.Weight < 0 || n.Weight > discovery.MaxWeight {
		return leaf.BadField("weight of node "+n.ID, n.Weight, fmt.Sprintf("must be 0 to %d", discovery.MaxWeight))
	}
	if host, port, err := net.SplitHostPort(n.GRPC); err != nil || host == "" || port == "" {
		return leaf.BadField("gRPC address of node "+n.ID, n.GRPC, "must be HOST:PORT")
	}
	return nil
}
