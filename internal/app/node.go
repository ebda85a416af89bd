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

// node is the manage.NodeBackend of a running App.
type node struct {
	app     *App
	catalog *manage.Catalog // nil: segment mode is off
}

var _ manage.NodeBackend = (*node)(nil)

// Backend returns the administrative interface of the running node.
func (a *App) Backend() manage.NodeBackend { return a.node() }

func (a *App) node() *node {
	n := &node{app: a}
	if a.alloc != nil {
		n.catalog = a.dbs.catalog(a.cfg.Segment.LoadTimeout, a.alloc.Mark)
	}
	return n
}

func (n *node) Info(context.Context) (manage.Info, error) {
	ready, reasons, _ := n.app.ready().Of("")
	stage, _ := n.app.drain.now()
	return manage.Info{
		Version: n.app.opts.Version, PID: os.Getpid(), Started: n.app.created.Truncate(time.Second), DataDir: n.app.dir.Path(),
		Stores: n.app.dbs.addresses(), Ready: ready, Reasons: reasons, Stage: stage,
		HTTP: n.app.Addr(), GRPC: n.app.GRPCAddr(), RESP: n.app.RESPAddr(), Admin: n.app.AdminAddr(),
	}, nil
}

func (n *node) Tags(ctx context.Context) ([]manage.Tag, error) {
	if n.app.alloc == nil {
		return nil, errNoSegment
	}
	return n.catalog.Tags(ctx)
}

func (n *node) Tag(ctx context.Context, name string) (manage.Tag, error) {
	if n.app.alloc == nil {
		return manage.Tag{}, errNoSegment
	}
	return n.catalog.Tag(ctx, name)
}

func (n *node) CreateTag(ctx context.Context, tag manage.NewTag) (manage.Tag, error) {
	if err := n.bound(tag.Name); err != nil {
		return manage.Tag{}, err
	}
	if err := n.catalog.Create(ctx, tag, func(context.Context) (*segment.Allocator, error) { return n.app.alloc, nil }); err != nil {
		return manage.Tag{}, err
	}
	n.refresh(ctx, tag.Name)
	return n.catalog.Tag(ctx, tag.Name)
}

func (n *node) SetTag(ctx context.Context, name string, change manage.TagChange) (manage.Tag, error) {
	if err := n.bound(name); err != nil {
		return manage.Tag{}, err
	}
	if err := n.catalog.Set(ctx, name, change); err != nil {
		return manage.Tag{}, err
	}
	n.refresh(ctx, name)
	return n.catalog.Tag(ctx, name)
}

func (n *node) DeleteTag(ctx context.Context, name string) error {
	if err := n.bound(name); err != nil {
		return err
	}
	if err := n.catalog.Delete(ctx, name); err != nil {
		return err
	}
	n.refresh(ctx, name)
	return nil
}

func (n *node) RepairTag(ctx context.Context, name string, above int64) (manage.Repair, error) {
	if n.app.alloc == nil {
		return manage.Repair{}, errNoSegment
	}
	return n.catalog.Repair(ctx, n.app.alloc, name, above)
}

func (n *node) PlanRepair(ctx context.Context, name string, above int64) (manage.RepairPlan, error) {
	if n.app.alloc == nil {
		return manage.RepairPlan{}, errNoSegment
	}
	plan, err := n.app.alloc.PlanRepair(ctx, name, above)
	return manage.PlanOf(plan), err
}

func (n *node) Next(ctx context.Context, tag string, count int) ([]leaf.Range, error) {
	if n.app.alloc == nil {
		return nil, errNoSegment
	}
	ranges, err := n.app.issuers.Segment.NextN(ctx, tag, count)
	return ranges, withCause(err)
}

// bound reports whether the tag's database belongs to the configured division of tags.
func (n *node) bound(tag string) error {
	if n.app.alloc == nil {
		return errNoSegment
	}
	return n.app.alloc.Bound(tag)
}

func (n *node) NextSnowflake(ctx context.Context, count int) ([]leaf.Range, error) {
	if n.app.worker == nil {
		return nil, n.app.noSnowflake()
	}
	return n.app.issuers.Snowflake.NextN(ctx, "", count)
}

func (n *node) ConfirmClock(context.Context) (time.Time, error) {
	if n.app.worker == nil {
		return time.Time{}, n.app.noSnowflake()
	}
	return n.app.worker.ConfirmClock(), nil
}

// workers returns the registry's own backend.
func (n *node) workers() (*manage.Registry, error) {
	if n.app.worker == nil {
		return nil, n.app.noSnowflake()
	}
	return n.app.registry.manage(n.app.cfg.Snowflake, func() int64 { return n.app.worker.Status().Number }), nil
}

func (n *node) Workers(ctx context.Context) (manage.Workers, error) {
	w, err := n.workers()
	if err != nil {
		return manage.Workers{}, err
	}
	return w.Workers(ctx)
}

func (n *node) ReleaseWorker(ctx context.Context, number int64) error {
	w, err := n.workers()
	if err != nil {
		return err
	}
	return w.ReleaseWorker(ctx, number)
}

func (n *node) InitWorkers(ctx context.Context) error {
	w, err := n.workers()
	if err != nil {
		return err
	}
	return w.InitWorkers(ctx)
}

// refresh makes a committed change count at once. If that fails, it counts at the
// next reading of all tags, so the command itself has succeeded.
func (n *node) refresh(ctx context.Context, tag string) {
	if err := n.app.alloc.Refresh(ctx, tag); err != nil {
		n.app.log.Warn("a change of a tag counts only from the next sync", "tag", tag, "error", err)
	}
}

// rows is what /db shows.
func (n *node) rows(ctx context.Context, ask httpd.PageRequest) (httpd.Page, error) {
	rows, next, err := n.catalog.TagsAfter(ctx, ask.After, ask.Limit)
	if err != nil {
		return httpd.Page{}, err
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
