package app

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/internal/manage"
	"github.com/leaf-idgen/leaf/segment"
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

// learnCluster asks the databases for their IDs until it has them or ctx ends, and keeps
// them in the data directory. The node serves meanwhile; clients cannot compare then.
func (a *App) learnCluster(ctx context.Context) {
	if len(a.dbs.stores) == 0 {
		return
	}
	rt, warned := leaf.SystemRuntime(), false
	for pause := firstClusterRetry; ; pause = min(2*pause, longestClusterRetry) {
		all, err := a.learnClusterOnce(ctx)
		if all {
			return
		}
		if err != nil && pause == longestClusterRetry && !warned && !errors.Is(ctx.Err(), context.Canceled) {
			warned = true
			a.log.Warn("the node has not read the ID of its cluster, or cannot keep it; clients cannot tell this node from one of another cluster then, and its next start does not notice the database of another cluster; the node tries again every 5 s", "error", err)
		}
		if rt.Wait(ctx, nil, rt.Jitter(pause)) != nil {
			return
		}
	}
}

// learnClusterOnce reports whether nothing is left to learn. A database has no ID as long
// as the table that holds it is not made.
func (a *App) learnClusterOnce(ctx context.Context) (all bool, err error) {
	all = true
	for i, s := range a.dbs.stores {
		id, err := readCluster(ctx, s)
		switch {
		case err != nil:
			return false, fmt.Errorf("store %q: %w", a.dbs.name(i), err)
		case id == "":
			all = false
		case i == 0 && a.cluster.get() == "":
			if err := a.presence.setCluster(id); err != nil {
				return false, err
			}
			a.cluster.id.Store(&id)
		}
	}
	return all, a.dbs.remember(a.dir, a.cfg.Segment.Enable)
}

func readCluster(ctx context.Context, s store) (string, error) {
	ctx, cancel := leaf.SystemRuntime().WithTimeout(ctx, manage.RegistryTimeout)
	defer cancel()
	return s.ClusterID(ctx)
}

// clusterID returns the ID of the cluster that the first database belongs to, as clients know it. It is "" for one that can have
// none: it has no table for the ID, or its user no right to make one. An error means that it is not known yet.
func (d *databases) clusterID(ctx context.Context) (string, error) {
	id, err := d.stores[0].ClusterID(ctx)
	if errors.Is(err, segment.ErrDenied) || errors.Is(err, segment.ErrSchema) {
		return "", nil
	}
	return id, err
}

// setCluster publishes the ID.
func (p *presence) setCluster(id string) error {
	if p == nil {
		return nil
	}
	return p.announcer.SetCluster(id)
}
