package client

import (
	"errors"
	"fmt"
	"sync"

	"google.golang.org/grpc/metadata"
)

// ErrOtherCluster says that a node belongs to another cluster than those before: an
// address was given to another cluster, or a list names nodes of two. Its IDs may be the
// same as those of the first cluster, so it is not used. Without [WithCluster] the first
// cluster may be the wrong one, and another client, or this one after a restart, may use
// the other cluster: the same numbers are then taken twice.
var ErrOtherCluster = errors.New("client: the node belongs to another cluster")

// clusterHeader is where a node says which cluster it belongs to.
const clusterHeader = "leaf-cluster"

// cluster is the ID of the cluster whose nodes the client uses: that of WithCluster, or the first
// ID that a node or an entry of a list names.
type cluster struct {
	named bool // by WithCluster

	mu sync.Mutex
	id string // "": not known yet
}

// admit returns ErrOtherCluster for a node of another cluster. A node that does not know
// its cluster, "", is of this one.
func (c *cluster) admit(id string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case id == "" || id == c.id:
		return nil
	case c.id == "":
		c.id = id
		return nil
	}
	if c.named {
		return fmt.Errorf("%w: %s, and this client uses %s", ErrOtherCluster, id, c.id)
	}
	return fmt.Errorf("%w: %s, and this client uses %s, which it met first; another client, or this one after a restart, may take IDs of %s, and both clusters give the same numbers: correct the list of nodes, and set WithCluster",
		ErrOtherCluster, id, c.id, id)
}

// admitHeader is admit for what a stream begins with.
func (c *cluster) admitHeader(stream interface {
	Header() (metadata.MD, error)
},
) error {
	header, err := stream.Header()
	if err != nil {
		return err
	}
	for _, id := range header.Get(clusterHeader) {
		if err := c.admit(id); err != nil {
			return err
		}
	}
	return nil
}

func (c *cluster) get() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.id
}
