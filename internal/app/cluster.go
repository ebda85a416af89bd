package app

import (
	"context"
	"errors"
	"fmt"
	"slices"
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
// as the table that holds it is not made. The node remembers the others beside one that does
// not answer: it takes ranges and worker IDs from them meanwhile.
func (a *App) learnClusterOnce(ctx context.Context) (all bool, err error) {
	all = true
	silent := map[int]bool{}
	for i, s := range a.dbs.stores {
		id, failed := readCluster(ctx, s)
		switch {
		case failed != nil:
			silent[i] = true
			err = errors.Join(err, fmt.Errorf("store %q: %w", a.dbs.name(i), failed))
		case id == "":
			all = false
		case i == 0 && a.cluster.get() == "":
			if failed := a.presence.setCluster(id); failed != nil {
				err = errors.Join(err, failed)
				continue
			}
			a.cluster.id.Store(&id)
		}
	}
	err = errors.Join(err, a.dbs.remember(a.dir, silent, a.keepsClusters()))
	return all && err == nil, err
}

// keepsClusters reports whether the node keeps the IDs of its databases in the data directory, and takes nothing from another
// cluster. With snowflake mode alone a leaf.db that was lost is made again. It must not get the ID of the one that was lost:
// segment mode is to miss that one.
func (a *App) keepsClusters() bool { return a.cfg.Segment.Enable || !a.dbs.embedded }

func readCluster(ctx context.Context, s store) (string, error) {
	ctx, cancel := leaf.SystemRuntime().WithTimeout(ctx, manage.RegistryTimeout)
	defer cancel()
	return s.ClusterID(ctx)
}

// clusterID returns the ID of the cluster that the first database belongs to, as clients know it. It is "" for one that can have
// none: it has no table for the ID, or its user no right to make one. It is also "" while the first database does not answer and
// another one has: the node issues the tags of that one. An error means that it is not known yet.
func (d *databases) clusterID(ctx context.Context) (string, error) {
	id, err := d.stores[0].ClusterID(ctx)
	switch {
	case err == nil:
		return id, nil
	case errors.Is(err, segment.ErrDenied), errors.Is(err, segment.ErrSchema),
		slices.ContainsFunc(d.stores[1:], func(s store) bool { return s.KnownCluster() != "" }):
		return "", nil
	}
	return "", err
}

// setCluster publishes the ID.
func (p *presence) setCluster(id string) error {
	if p == nil {
		return nil
	}
	return p.announcer.SetCluster(id)
}
