package client

import (
	"sync/atomic"
	"time"

	"github.com/leaf-idgen/leaf/client/cache"
)

// counters are what Stats shows of the client as a whole.
type counters struct {
	hedges     atomic.Int64
	retries    atomic.Int64
	overBudget atomic.Int64
	late       atomic.Int64
	lost       atomic.Int64
	violations atomic.Int64
	others     atomic.Int64
	listed     atomic.Int64
}

// Stats is a snapshot of a client. Its counters begin at the start of the client.
type Stats struct {
	Nodes  []NodeStats // that the client uses (WithMaxNodes, and owners of tags in strict order), by ID
	Listed int         // entries of the current list that can be used

	Hedges     int64   // requests sent again to another node because the answer was late
	Retries    int64   // requests sent again because the first one failed
	OverBudget int64   // times that one of the two had to wait or was left out
	Budget     float64 // how many could be sent now
	Late       int64   // answers that came after another one had won, or after all callers had left
	Lost       int64   // IDs that came and that no caller got; IDs of answers that never came, or whose ranges are not in order, are not known
	Cluster    string  // the ID of the cluster; "": no node has said it
	Others     int64   // entries of the list that are not used because they belong to another cluster
	Violations int64   // answers that WithUniquenessCheck refused

	Cache cache.Stats // of WithCache
}

// NodeStats is what a client knows of a node.
type NodeStats struct {
	ID        string
	Zone      string
	Address   string
	Weight    int
	State     State
	InFlight  int64         // requests without an answer
	Requests  int64         // sent; one may carry many calls
	Failures  int64         // without an answer
	Ejections int64         // times that it was taken out
	Err       error         // why it was last ejected, e.g. ErrOtherCluster; nil: it has answered health checks since
	Latency   time.Duration // about the 95th percentile; 0: not known
}

// Stats returns a snapshot of the client.
func (c *Client) Stats() Stats {
	s := Stats{
		Listed:     int(c.stats.listed.Load()),
		Hedges:     c.stats.hedges.Load(),
		Retries:    c.stats.retries.Load(),
		OverBudget: c.stats.overBudget.Load(),
		Budget:     c.budget.left(c.rt.Now()),
		Late:       c.stats.late.Load(),
		Lost:       c.stats.lost.Load(),
		Violations: c.stats.violations.Load(),
		Others:     c.stats.others.Load(),
		Cluster:    c.cluster.get(),
	}
	if c.cache != nil {
		s.Cache = c.cache.Stats()
	}
	for _, n := range *c.nodes.linked.Load() {
		info := n.info.Load()
		n.mu.Lock()
		state, latency, why := n.state, n.p95, n.why
		n.mu.Unlock()
		s.Nodes = append(s.Nodes, NodeStats{
			ID: info.ID, Zone: info.Zone, Address: info.GRPC, Weight: info.Weight,
			State: state, Latency: latency, Err: why,
			InFlight: n.inFlight.Load(), Requests: n.requests.Load(),
			Failures: n.failures.Load(), Ejections: n.ejected.Load(),
		})
	}
	return s
}
