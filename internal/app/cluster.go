package app

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/internal/manage"
)

const (
	firstClusterRetry   = 100 * time.Millisecond
	longestClusterRetry = 5 * time.Second
)

// cluster is the ID of the cluster that the first database of this node belongs to.
// Clients compare it, so that they do not mix the IDs of two clusters.
type cluster struct{ id atomic.Pointer[string] }

// get returns the ID, "" if it is not known.
func (c *cluster) get() string {
	if id := c.id.Load(); id != nil {
		return *id
	}
	return ""
}

// learnCluster asks the first database for the ID until it has it or ctx ends. The node
// serves meanwhile; clients cannot compare then.
func (a *App) learnCluster(ctx context.Context) {
	if len(a.dbs.stores) == 0 {
		return
	}
	rt, warned := leaf.SystemRuntime(), false
	for pause := firstClusterRetry; ; pause = min(2*pause, longestClusterRetry) {
		bounded, cancel := rt.WithTimeout(ctx, manage.RegistryTimeout)
		id, err := a.dbs.stores[0].ClusterID(bounded)
		cancel()
		if err == nil && id != "" { // else the table that holds it is not made yet
			if err = a.presence.setCluster(id); err == nil {
				a.cluster.id.Store(&id)
				return
			}
		}
		if err != nil && pause == longestClusterRetry && !warned && !errors.Is(ctx.Err(), context.Canceled) {
			warned = true
			a.log.Warn("the node has not read the cluster's ID in its first database; until then clients cannot tell this node from one of another cluster; the node tries again every 5 s", "store", a.dbs.stores[0].Redacted(), "error", err)
		}
		if rt.Wait(ctx, nil, rt.Jitter(pause)) != nil {
			return
		}
	}
}

// setCluster publishes the ID.
func (p *presence) setCluster(id string) error {
	if p == nil {
		return nil
	}
	return p.announcer.SetCluster(id)
}
