package admin

import (
	"context"
	"net/http"
	"net/url"
	"strconv"

	"github.com/leaf-idgen/leaf"
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

// handleNodes adds the routes of a Weigher.
func handleNodes(handle func(pattern string, f func(ctx context.Context, r *http.Request) (any, error)), b Weigher) {
	handle("GET /v1/nodes", func(ctx context.Context, _ *http.Request) (any, error) { return b.Nodes(ctx) })
	handle("POST /v1/node/weight", func(ctx context.Context, r *http.Request) (any, error) {
		text := r.URL.Query().Get("weight")
		weight, err := strconv.Atoi(text)
		if err != nil {
			return nil, leaf.BadField("weight", text, "must be a number")
		}
		return b.SetWeight(ctx, weight)
	})
}

// Nodes implements NodeLister.
func (c *Client) Nodes(ctx context.Context) (Nodes, error) {
	return call[Nodes](ctx, c, http.MethodGet, "/v1/nodes", nil, nil)
}

// SetWeight implements Weigher.
func (c *Client) SetWeight(ctx context.Context, weight int) (Node, error) {
	return call[Node](ctx, c, http.MethodPost, "/v1/node/weight", url.Values{"weight": {strconv.Itoa(weight)}}, nil)
}
