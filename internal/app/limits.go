package app

import (
	"context"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/internal/limit"
	"github.com/leaf-idgen/leaf/internal/manage"
)

// openLimits puts the gate in front of the engines, which may be nil.
func (a *App) openLimits() (err error) {
	a.issuers = leaf.Issuers{Segment: leaf.Disabled("segment"), Snowflake: leaf.Disabled("snowflake")}
	if a.alloc != nil {
		a.issuers.Segment = a.files.guard(a.alloc)
	}
	if a.worker != nil {
		a.issuers.Snowflake = a.files.guard(a.worker)
	}
	c := a.cfg.Limit
	if a.gate, err = limit.New(a.issuers, limit.Config{Tokens: a.tokens.clients, TargetWait: c.TargetWait, MaxWaiting: int(c.MaxWaiting)}); err != nil {
		return err
	}
	sources := a.limitSources()
	for i := range sources {
		if a.alloc != nil {
			sources[i].Issues = func() bool { return a.alloc.Answers(i) }
		}
		if a.opts.limits != nil {
			sources[i].Store = a.opts.limits(sources[i].Store)
		}
	}
	a.limits = limit.NewFollower(a.gate, sources, limit.FollowConfig{
		Interval: c.Refresh, Timeout: a.cfg.Segment.LoadTimeout,
		MaxWait: a.cfg.Segment.MaxWait, MaxWaiting: int(c.MaxWaiting), Logger: a.log,
	})
	return nil
}

func (a *App) limitCatalog() *manage.Catalog {
	return a.dbs.catalog(a.cfg.Segment.LoadTimeout, nil)
}

func (a *App) limitSources() (all []limit.Source) {
	c := a.limitCatalog()
	for i, s := range c.Stores {
		all = append(all, limit.Source{Name: c.Router.Stores()[i].Name, Store: s, Holds: func(tag string) bool { return c.Holds(i, tag) }})
	}
	return all
}

func (n *node) Limits(ctx context.Context) (manage.Limits, error) {
	all, err := n.app.limitCatalog().Limits(ctx)
	if err != nil {
		return manage.Limits{}, err
	}
	type name struct {
		kind, name string
	}
	states := map[name]limit.RuleStatus{}
	for _, r := range n.app.gate.Rules() {
		kind := manage.LimitOfTag
		if r.Client {
			kind = manage.LimitOfClient
		}
		states[name{kind, r.Name}] = r
	}
	for i, l := range all {
		s := states[name{l.Kind, l.Name}]
		all[i].Used, all[i].Refused = s.Used, s.Refused
	}
	return manage.Limits{Limits: all, Node: traffic(n.app.gate.Status())}, nil
}

func traffic(s limit.Status) *manage.NodeTraffic {
	room := func(r limit.Room) manage.WaitingRoom {
		return manage.WaitingRoom{Waiting: r.Waiting, Limit: r.Limit, Shed: r.Shed}
	}
	return &manage.NodeTraffic{
		Unauthenticated: s.Unauthenticated, Blocked: s.Blocked, Rate: s.Rate, Quota: s.Quota,
		Segment: room(s.Segment), Snowflake: room(s.Snowflake),
	}
}

func (n *node) SetTagLimit(ctx context.Context, tag string, change manage.LimitChange) (manage.Limit, error) {
	if err := n.bound(tag); err != nil {
		return manage.Limit{}, err
	}
	l, err := n.app.limitCatalog().SetTagLimit(ctx, tag, change)
	return n.inForce(ctx, l, err)
}

func (n *node) SetClientLimit(ctx context.Context, client string, change manage.LimitChange) (manage.Limit, error) {
	l, err := n.app.limitCatalog().SetClientLimit(ctx, client, change)
	return n.inForce(ctx, l, err)
}

// inForce makes a committed change count at once. If that fails, it counts at the next
// reading, so the command itself has succeeded.
func (n *node) inForce(ctx context.Context, l manage.Limit, err error) (manage.Limit, error) {
	if err != nil {
		return manage.Limit{}, err
	}
	if err := n.app.limits.Refresh(ctx); err != nil {
		n.app.log.Warn("a change of a limit counts only from the next reading", "kind", l.Kind, "name", l.Name, "error", err)
	}
	return l, nil
}

func (o *offline) Limits(ctx context.Context) (manage.Limits, error) {
	if err := o.bind(ctx); err != nil {
		return manage.Limits{}, err
	}
	all, err := o.catalog.Limits(ctx)
	return manage.Limits{Limits: all}, err
}

func (o *offline) SetTagLimit(ctx context.Context, tag string, change manage.LimitChange) (manage.Limit, error) {
	if err := o.bind(ctx); err != nil {
		return manage.Limit{}, err
	}
	return o.catalog.SetTagLimit(ctx, tag, change)
}

func (o *offline) SetClientLimit(ctx context.Context, client string, change manage.LimitChange) (manage.Limit, error) {
	if err := o.bind(ctx); err != nil {
		return manage.Limit{}, err
	}
	return o.catalog.SetClientLimit(ctx, client, change)
}

func (a *App) sampleLimits(s samples) {
	st := a.gate.Status()
	const refused, help = "leaf_requests_refused_total", "Requests refused before an ID was taken, by reason; unauthenticated counts connections that showed a wrong token, too."
	for _, r := range []struct {
		reason string
		n      int64
	}{
		{"unauthenticated", st.Unauthenticated},
		{"blocked", st.Blocked},
		{"rate", st.Rate},
		{"quota", st.Quota},
		{"waiting", st.Segment.Shed + st.Snowflake.Shed},
	} {
		s.counter(refused, help, r.n, "reason", r.reason)
	}
	for _, m := range a.rooms(st) {
		s.gauge("leaf_requests_waiting", "Requests that wait for IDs.", float64(m.Waiting), "mode", m.mode)
	}
	for _, m := range a.rooms(st) {
		s.gauge("leaf_requests_waiting_limit", "Requests that may wait for IDs now.", float64(m.Limit), "mode", m.mode)
	}
}

type modeRoom struct {
	mode string
	limit.Room
}

// rooms are the waiting rooms of the modes that this node serves.
func (a *App) rooms(st limit.Status) (all []modeRoom) {
	if a.alloc != nil {
		all = append(all, modeRoom{"segment", st.Segment})
	}
	if a.worker != nil {
		all = append(all, modeRoom{"snowflake", st.Snowflake})
	}
	return all
}
