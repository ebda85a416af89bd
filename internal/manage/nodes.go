package manage

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/discovery"
	"github.com/leaf-idgen/leaf/segment"
)

// Nodes is what a directory lists.
type Nodes struct {
	Directory string `json:"directory"` // its URL, without a password
	Nodes     []Node `json:"nodes"`
}

// Node is one node of the cluster, as clients see it.
type Node struct {
	discovery.Node

	Own bool `json:"own,omitempty"` // the node that answers
}

// Directory is an opened directory of nodes. It is a DirectorySite.
type Directory struct {
	Opened discovery.Directory
	Where  string // its URL, without a password
	Own    string // ID of the node that answers, "" without one

	Announcer *discovery.Announcer // publishes the node, nil without one
}

// Directory implements DirectorySite.
func (d *Directory) Directory(context.Context) (*Directory, error) { return d, nil }

// ListNodes returns the nodes that are listed, by ID. Errors: leaf.ErrDisabled without a
// directory; leaf.ErrNotReady if it does not answer.
type ListNodes struct{}

func (ListNodes) run(ctx context.Context, d *Directory) (Nodes, error) {
	ctx, cancel := context.WithTimeout(ctx, RegistryTimeout)
	defer cancel()
	list, err := d.Opened.List(ctx)
	switch {
	case errors.Is(err, segment.ErrSchema), errors.Is(err, segment.ErrDenied):
		return Nodes{}, fmt.Errorf("%w: %w", leaf.ErrNotReady, err)
	case err != nil:
		return Nodes{}, fmt.Errorf("%w: the directory of nodes does not answer: %w", leaf.ErrNotReady, err)
	}
	out := Nodes{Directory: d.Where, Nodes: []Node{}}
	for _, n := range list {
		out.Nodes = append(out.Nodes, d.describe(n))
	}
	return out, nil
}

func (d *Directory) describe(n discovery.Node) Node {
	return Node{n, n.ID == d.Own}
}

// weightTimeout is how long a command waits until the directory has a new weight.
const weightTimeout = 5 * time.Second

// SetWeight changes the node's share of the clients' traffic, 0 to 1000, until its
// process ends, and returns when the directory has it. Errors: leaf.ErrBadRequest;
// leaf.ErrDisabled without a directory; leaf.ErrConflict if the node has left it;
// leaf.ErrNotReady if it does not answer: the change then stands, and is published as
// soon as it does.
type SetWeight struct {
	Weight int `query:"weight" must:"must be a number"`
}

func (q SetWeight) run(ctx context.Context, d *Directory) (Node, error) {
	ctx, cancel := context.WithTimeout(ctx, weightTimeout)
	defer cancel()
	if err := d.Announcer.SetWeight(ctx, q.Weight); err != nil {
		return Node{}, err
	}
	return d.describe(d.Announcer.Status().Node), nil
}
