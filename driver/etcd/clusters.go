package etcd

import (
	"context"
	"fmt"
	"sync"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/leaf-idgen/leaf/internal/bounded"
	"github.com/leaf-idgen/leaf/worker"
)

// oneClusterFor is how long no other cluster has answered before an answer counts. Calls go to the
// endpoints in turn, and a node makes several in this time.
const oneClusterFor = time.Minute

// clusters knows which etcd clusters have answered. Two clusters know nothing of each other's claims and
// fences, so a node must not take for one what two say. A cluster that was restored from a
// snapshot may have another ID than the one before: it takes the place of the other one once,
// while the answers of two that the endpoints name come in turn.
type clusters struct {
	mu          sync.Mutex
	last, other uint64 // the cluster of the last answer, and the one before it
	changed     time.Time
	turns       bool // one more change came within oneClusterFor
}

// answered notes the header of an answer.
func (c *clusters) answered(reply any, now time.Time) {
	r, ok := reply.(interface {
		GetHeader() *etcdserverpb.ResponseHeader
	})
	if ok {
		c.saw(r.GetHeader().GetClusterId(), now)
	}
}

func (c *clusters) saw(id uint64, now time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if id == 0 || id == c.last {
		return
	}
	if c.last != 0 {
		c.turns = c.other != 0 && now.Sub(c.changed) < oneClusterFor
		c.other, c.changed = c.last, now
	}
	c.last = id
}

// check returns an error if two clusters have answered within oneClusterFor. It is ErrLost if the
// endpoints lead to both: a claim that one of them has acknowledged keeps no node of the other from the number.
func (c *clusters) check(now time.Time) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.other == 0 || now.Sub(c.changed) >= oneClusterFor:
		return nil
	case c.turns:
		return twoClustersError{c.last, c.other}
	}
	return fmt.Errorf("another etcd cluster answers: its ID is %x, and that of the one before was %x; if it stays the only one, its answers count within %v", c.last, c.other, oneClusterFor)
}

// twoClustersError is ErrLost to the owner of a claim. It does not say so: it may also be about a fence or a directory.
type twoClustersError struct{ last, other uint64 }

func (e twoClustersError) Error() string {
	return fmt.Sprintf("the addresses lead to two etcd clusters, with the IDs %x and %x, and both would give the same numbers; leave out the addresses of one, on all nodes (etcdctl endpoint status -w json shows the cluster_id of each address)", e.last, e.other)
}

func (twoClustersError) Is(target error) bool { return target == worker.ErrLost }

// logInAndMeet returns a client that has met each endpoint.
func (c *conn) logInAndMeet() (*clientv3.Client, error) {
	client, err := c.logIn()
	if err == nil {
		c.meet(client)
	}
	return client, err
}

// meet asks each endpoint for the ID of its cluster, before the client is used. Otherwise a claim and the
// reading before it could both go to one cluster of two, because the connection to the other one is not made yet.
func (c *conn) meet(client *clientv3.Client) {
	if len(c.cfg.Endpoints) < 2 {
		return
	}
	ctx, cancel := context.WithTimeout(c.ctx, meetFor)
	defer cancel()
	var all sync.WaitGroup
	for _, e := range c.cfg.Endpoints {
		all.Go(func() {
			// The answer is noted by attempted. Without one, the calls tell which cluster answers.
			_, _ = bounded.Recover("the etcd client", func() (*clientv3.StatusResponse, error) { return client.Status(ctx, e) })
		})
	}
	all.Wait()
}

// meetFor is how long a new client waits for the endpoints: for all of them, so one that swallows
// packets costs that much at a start.
const meetFor = time.Second
