package app

import (
	"context"
	"os"
	"time"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/internal/manage"
	"github.com/leaf-idgen/leaf/internal/server/httpd"
	"github.com/leaf-idgen/leaf/segment"
)

// node is a running App as a site of administration.
type node struct {
	app     *App
	catalog *manage.Catalog
}

var _ manage.NodeSite = (*node)(nil)

// Backend returns the administrative interface of the running node.
func (a *App) Backend() manage.Backend { return a.node().backend() }

// backend is what administrators reach the node by.
func (n *node) backend() manage.Backend { return traced{manage.On(n), n.app.tracer} }

func (a *App) node() *node {
	n := &node{a, a.dbs.catalog(a.cfg.Segment.LoadTimeout, nil)}
	n.catalog.Bound, n.catalog.TagChanged, n.catalog.LimitChanged, n.catalog.Gate = n.bound, n.tagChanged, n.limitChanged, a.gate
	if a.alloc != nil {
		n.catalog.Mark, n.catalog.ClusterEnd = a.alloc.Mark, a.alloc.ClusterEnd
		n.catalog.Engine = func(context.Context) (*segment.Allocator, error) { return a.alloc, nil }
	}
	return n
}

// Info implements manage.StoreSite.
func (n *node) Info(context.Context) (manage.Info, error) {
	ready, reasons, _ := n.app.ready().Of("")
	stage, _ := n.app.drain.now()
	return manage.Info{
		Version: n.app.opts.Version, PID: os.Getpid(), Started: n.app.created.Truncate(time.Second), DataDir: n.app.dir.Path(),
		Stores: n.app.dbs.addresses(), Ready: ready, Reasons: reasons, Stage: stage,
		Addresses: n.app.listening(),
	}, nil
}

// Catalog implements manage.StoreSite.
func (n *node) Catalog(context.Context) (*manage.Catalog, error) {
	if n.app.alloc == nil {
		return nil, errNoSegment
	}
	return n.catalog, nil
}

// Engine implements manage.StoreSite.
func (n *node) Engine(ctx context.Context) (*manage.Catalog, error) { return n.Catalog(ctx) }

// Limits implements manage.StoreSite.
func (n *node) Limits(context.Context) (*manage.Catalog, error) { return n.catalog, nil }

// Issuer implements manage.StoreSite.
func (n *node) Issuer(context.Context) (leaf.Issuer, error) {
	if n.app.alloc == nil {
		return nil, errNoSegment
	}
	return n.app.issuers.Segment, nil
}

func (n *node) bound(ctx context.Context, tag string) error {
	if n.app.alloc == nil {
		return errNoSegment
	}
	return n.app.alloc.Bound(ctx, tag)
}

// tagChanged does not fail: a change that the node cannot read now takes effect at the next reading
// of all tags, so the command itself has succeeded.
func (n *node) tagChanged(ctx context.Context, tag string) error {
	if err := n.app.alloc.Refresh(ctx, tag); err != nil {
		n.app.log.Warn("a changed tag could not be read at once; the change takes effect at the next reading of all tags", "tag", tag, "error", err)
	}
	return nil
}

// limitChanged is tagChanged for limits.
func (n *node) limitChanged(ctx context.Context, l manage.Limit) {
	if err := n.app.limits.Refresh(ctx); err != nil {
		n.app.log.Warn("a change of a limit takes effect only at the next reading", "kind", l.Kind, "name", l.Name, "error", err)
	}
}

// Registry implements manage.RegistrySite.
func (n *node) Registry(context.Context) (*manage.Registry, error) {
	if n.app.worker == nil {
		return nil, n.app.noSnowflake()
	}
	return n.app.registry.manage(n.app.cfg.Snowflake, func() int64 { return n.app.worker.Status().Number }), nil
}

// Snowflake implements manage.NodeSite.
func (n *node) Snowflake(context.Context) (leaf.Issuer, error) {
	if n.app.worker == nil {
		return nil, n.app.noSnowflake()
	}
	return n.app.issuers.Snowflake, nil
}

// ConfirmClock implements manage.NodeSite.
func (n *node) ConfirmClock() (time.Time, error) {
	if n.app.worker == nil {
		return time.Time{}, n.app.noSnowflake()
	}
	return n.app.worker.ConfirmClock()
}

// Directory implements manage.DirectorySite.
func (n *node) Directory(context.Context) (*manage.Directory, error) {
	if n.app.presence == nil {
		return nil, noDirectory(n.app.cfg, n.app.dbs, n.app.unpublished)
	}
	p := n.app.presence
	return &manage.Directory{Opened: p.Directory, Where: p.where, Own: n.app.dir.NodeID(), Announcer: p.announcer}, nil
}

// rows is what /db shows.
func (n *node) rows(ctx context.Context, ask httpd.PageRequest) (httpd.Page, error) {
	rows, next, err := n.catalog.TagsAfter(ctx, ask.After, ask.Limit)
	if err != nil {
		return httpd.Page{}, forClients(err)
	}
	return httpd.Page{Rows: rows, Next: next}, nil
}

// buffers is what /cache shows.
func (a *App) buffers(_ context.Context, ask httpd.PageRequest) (httpd.Page, error) {
	tags, more := a.alloc.SnapshotAfter(ask.After, ask.Limit)
	if tags == nil {
		tags = []segment.TagStatus{} // an empty list, not null
	}
	page := httpd.Page{Rows: tags}
	if more {
		page.Next = tags[len(tags)-1].Tag
	}
	return page, nil
}
