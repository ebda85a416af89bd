package app

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/internal/limit"
	"github.com/leaf-idgen/leaf/internal/manage"
)

// errNoLimits is the answer of commands about limits without a database.
var errNoLimits = fmt.Errorf("%w: limits are kept in the database of segment mode or of the worker IDs (snowflake.registry=sql), and this node uses neither", leaf.ErrDisabled)

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
	sources := a.limitCatalog().sources()
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

func (a *App) limitCatalog() *limitCatalog {
	return &limitCatalog{catalog{dbs: a.dbs, timeout: a.cfg.Segment.LoadTimeout}}
}

// limitCatalog is the limits of all databases: those of a tag in its own, those of clients
// in the first.
type limitCatalog struct{ catalog }

func (c *limitCatalog) sources() (all []limit.Source) {
	for i, s := range c.dbs.stores {
		all = append(all, limit.Source{Name: c.dbs.router.Stores()[i].Name, Store: s, Holds: func(tag string) bool { return c.holds(i, tag) }})
	}
	return all
}

// holds reports whether a database is the one of a tag. Nothing else counts there.
func (c *limitCatalog) holds(store int, tag string) bool {
	return len(c.dbs.stores) == 1 || c.dbs.router.Route(tag) == store
}

func (c *limitCatalog) list(ctx context.Context) ([]manage.Limit, error) {
	all := []manage.Limit{}
	var clients []manage.Limit
	for i, s := range c.dbs.stores {
		rules, err := c.read(ctx, i)
		if err != nil {
			return nil, err
		}
		for _, tag := range slices.Sorted(maps.Keys(rules.Tags)) {
			if c.holds(i, tag) {
				all = append(all, c.of(i, manage.LimitOfTag, tag, rules.Tags[tag]))
			}
		}
		if s == c.dbs.stores[0] {
			for _, name := range slices.Sorted(maps.Keys(rules.Clients)) {
				clients = append(clients, c.of(i, manage.LimitOfClient, name, rules.Clients[name]))
			}
		}
	}
	slices.SortStableFunc(all, func(a, b manage.Limit) int { return cmp.Compare(a.Name, b.Name) })
	return append(all, clients...), nil
}

func (c *limitCatalog) read(ctx context.Context, store int) (limit.Rules, error) {
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	rules, err := c.dbs.stores[store].Limits(ctx)
	return rules, storeError(err)
}

func (c *limitCatalog) of(store int, kind, name string, r limit.Rule) manage.Limit {
	l := manage.Limit{Kind: kind, Name: name, Rate: r.Rate, Quota: r.Quota, Blocked: r.Blocked}
	if len(c.dbs.stores) > 1 {
		l.Store = c.dbs.router.Stores()[store].Name
	}
	return l
}

func (c *limitCatalog) setTag(ctx context.Context, tag string, change manage.LimitChange) (manage.Limit, error) {
	if len(c.dbs.stores) == 0 {
		return manage.Limit{}, errNoLimits
	}
	i, err := c.dbs.route(tag)
	if err != nil {
		return manage.Limit{}, err
	}
	rules, err := c.read(ctx, i)
	if err != nil {
		return manage.Limit{}, err
	}
	r := changed(rules.Tags[tag], change)
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	return c.of(i, manage.LimitOfTag, tag, r), storeError(c.dbs.stores[i].SetTagLimit(ctx, tag, r))
}

func (c *limitCatalog) setClient(ctx context.Context, client string, change manage.LimitChange) (manage.Limit, error) {
	if len(c.dbs.stores) == 0 {
		return manage.Limit{}, errNoLimits
	}
	rules, err := c.read(ctx, 0)
	if err != nil {
		return manage.Limit{}, err
	}
	r := changed(rules.Clients[client], change)
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	return c.of(0, manage.LimitOfClient, client, r), storeError(c.dbs.stores[0].SetClientLimit(ctx, client, r))
}

// changed returns r with the fields of c that are set.
func changed(r limit.Rule, c manage.LimitChange) limit.Rule {
	if c.Rate != nil {
		r.Rate = *c.Rate
	}
	if c.Quota != nil {
		r.Quota = *c.Quota
	}
	if c.Blocked != nil {
		r.Blocked = *c.Blocked
	}
	return r
}

func (n *node) Limits(ctx context.Context) (manage.Limits, error) {
	all, err := n.app.limitCatalog().list(ctx)
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
	l, err := n.app.limitCatalog().setTag(ctx, tag, change)
	return n.inForce(ctx, l, err)
}

func (n *node) SetClientLimit(ctx context.Context, client string, change manage.LimitChange) (manage.Limit, error) {
	l, err := n.app.limitCatalog().setClient(ctx, client, change)
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

func (o *offline) limits() *limitCatalog { return &limitCatalog{o.catalog} }

func (o *offline) Limits(ctx context.Context) (manage.Limits, error) {
	if err := o.bind(ctx); err != nil {
		return manage.Limits{}, err
	}
	all, err := o.limits().list(ctx)
	return manage.Limits{Limits: all}, err
}

func (o *offline) SetTagLimit(ctx context.Context, tag string, change manage.LimitChange) (manage.Limit, error) {
	if err := o.bind(ctx); err != nil {
		return manage.Limit{}, err
	}
	return o.limits().setTag(ctx, tag, change)
}

func (o *offline) SetClientLimit(ctx context.Context, client string, change manage.LimitChange) (manage.Limit, error) {
	if err := o.bind(ctx); err != nil {
		return manage.Limit{}, err
	}
	return o.limits().setClient(ctx, client, change)
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
