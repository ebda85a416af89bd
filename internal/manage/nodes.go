package manage

import "context"

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
