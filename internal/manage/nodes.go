package manage

import (
	"context"
	"errors"
	"fmt"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/discovery"
	"github.com/leaf-idgen/leaf/segment"
)

// NodeLister knows the directory in which clients find the nodes of the cluster.
type NodeLister interface {
	// Nodes returns the nodes that are listed, by ID. Errors: leaf.ErrDisabled without a
	// directory; leaf.ErrNotReady if it does not answer.
	Nodes(ctx context.Context) (Nodes, error)
}

// Weigher is a node that is listed in the directory.
type Weigher interface {
	NodeLister

	// SetWeight changes the node's share of the clients' traffic, 0 to 1000, until its
	// process ends, and returns when the directory has it. Errors: leaf.ErrBadRequest;
	// leaf.ErrDisabled without a directory; leaf.ErrConflict if the node has left it;
	// leaf.ErrNotReady if it does not answer: the change then stands, and is published as
	// soon as it does.
	SetWeight(ctx context.Context, weight int) (Node, error)
}

// Nodes is what a directory lists.
type Nodes struct {
	Directory string `json:"directory"` // its URL, without a password
	Nodes     []Node `json:"nodes"`
}

// Node is one node of the cluster, as clients see it. Addresses are HOST:PORT, "" where
// the protocol is off.
type Node struct {
	ID     string `json:"id"`
	Zone   string `json:"zone,omitempty"`
	Weight int    `json:"weight"`
	HTTP   string `json:"http,omitempty"`
	GRPC   string `json:"grpc,omitempty"`
	RESP   string `json:"resp,omitempty"`
	Own    bool   `json:"own,omitempty"` // the node that answers
}

// Directory is an opened directory of nodes.
type Directory struct {
	discovery.Directory

	Where string // its URL, without a password
	Own   string // ID of the node that answers, "" without one
}

// Nodes implements NodeLister.
func (d *Directory) Nodes(ctx context.Context) (Nodes, error) {
	ctx, cancel := context.WithTimeout(ctx, RegistryTimeout)
	defer cancel()
	list, err := d.List(ctx)
	switch {
	case errors.Is(err, segment.ErrSchema), errors.Is(err, segment.ErrDenied):
		return Nodes{}, fmt.Errorf("%w: %w", leaf.ErrNotReady, err)
	case err != nil:
		return Nodes{}, fmt.Errorf("%w: the directory of nodes does not answer: %w", leaf.ErrNotReady, err)
	}
	out := Nodes{Directory: d.Where, Nodes: []Node{}}
	for _, n := range list {
		out.Nodes = append(out.Nodes, d.Describe(n))
	}
	return out, nil
}

// Describe is a node of the directory, for people.
func (d *Directory) Describe(n discovery.Node) Node {
	return Node{ID: n.ID, Zone: n.Zone, Weight: n.Weight, HTTP: n.HTTP, GRPC: n.GRPC, RESP: n.RESP, Own: n.ID == d.Own}
}
