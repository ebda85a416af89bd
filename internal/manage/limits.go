package manage

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/internal/limit"
)

// Limits are all limits, and what a running node has made of them.
type Limits struct {
	Limits []Limit       `json:"limits"`
	Node   *limit.Status `json:"node,omitempty"` // nil without a running node
}

// Kinds of a Limit.
const (
	LimitOfTag    = "tag"
	LimitOfClient = "client"
)

// Limit is what a tag or a client may have, of each node. 64-bit numbers are strings in
// JSON.
type Limit struct {
	Kind    string `json:"kind"` // see the constants
	Name    string `json:"name"`
	Rate    int64  `json:"rate,string,omitempty"`    // IDs per second; 0: no limit
	Quota   int64  `json:"quota,string,omitempty"`   // IDs per day (UTC); 0: no limit
	Blocked bool   `json:"blocked,omitempty"`        // nothing is issued
	Store   string `json:"store,omitempty"`          // name of its database, if there are several
	Used    int64  `json:"used,string,omitempty"`    // IDs that this node issued today under the quota
	Refused int64  `json:"refused,string,omitempty"` // requests that this node refused since the limit is in force
}

// LimitChange is an edit; nil fields stay as they are.
type LimitChange = limit.Change

// errNoLimits is the answer of commands about limits without a database.
var errNoLimits = fmt.Errorf("%w: limits are kept in the database of segment mode or of the worker IDs (snowflake.registry=sql), and this node uses neither", leaf.ErrDisabled)

// limits returns the limits of all databases: those of a tag in its own, those of clients in
// the first.
func (c *Catalog) limits(ctx context.Context) ([]Limit, error) {
	all := []Limit{}
	var clients []Limit
	for i := range c.Stores {
		rules, err := c.readLimits(ctx, i)
		if err != nil {
			return nil, err
		}
		for _, tag := range slices.Sorted(maps.Keys(rules.Tags)) {
			if c.Holds(i, tag) {
				all = append(all, c.limitOf(i, LimitOfTag, tag, rules.Tags[tag]))
			}
		}
		if i == 0 {
			for _, name := range slices.Sorted(maps.Keys(rules.Clients)) {
				clients = append(clients, c.limitOf(i, LimitOfClient, name, rules.Clients[name]))
			}
		}
	}
	slices.SortStableFunc(all, func(a, b Limit) int { return cmp.Compare(a.Name, b.Name) })
	return append(all, clients...), nil
}

func (c *Catalog) readLimits(ctx context.Context, store int) (limit.Rules, error) {
	ctx, cancel := context.WithTimeout(ctx, c.Timeout)
	defer cancel()
	rules, err := c.Stores[store].Limits(ctx)
	return rules, StoreError(err)
}

func (c *Catalog) limitOf(store int, kind, name string, r limit.Rule) Limit {
	return Limit{Kind: kind, Name: name, Rate: r.Rate, Quota: r.Quota, Blocked: r.Blocked, Store: c.storeName(store)}
}

// limitStore returns the index of the database that has the limit of a tag or a client.
func (c *Catalog) limitStore(kind, name string) (int, error) {
	switch {
	case len(c.Stores) == 0:
		return 0, errNoLimits
	case kind == LimitOfTag:
		return c.route(name)
	}
	return 0, nil
}

// limitRule returns the rule of a tag or a client.
func (c *Catalog) limitRule(ctx context.Context, kind, name string) (limit.Rule, error) {
	store, err := c.limitStore(kind, name)
	if err != nil {
		return limit.Rule{}, err
	}
	rules, err := c.readLimits(ctx, store)
	if kind == LimitOfTag {
		return rules.Tags[name], err
	}
	return rules.Clients[name], err
}

// setLimit changes a limit, which takes effect at once on this node. The database applies the change: what
// another command changes at the same time stays.
func (c *Catalog) setLimit(ctx context.Context, kind, name string, change LimitChange) (l Limit, err error) {
	store, err := c.limitStore(kind, name)
	if err != nil {
		return l, err
	}
	set := c.Stores[store].SetClientLimit
	if kind == LimitOfTag {
		set = c.Stores[store].SetTagLimit
	}
	bounded, cancel := context.WithTimeout(ctx, c.Timeout)
	defer cancel()
	rule, err := set(bounded, name, change)
	if err != nil {
		return l, StoreError(err)
	}
	l = c.limitOf(store, kind, name, rule)
	if c.LimitChanged != nil {
		c.LimitChanged(ctx, l)
	}
	return l, nil
}

// ListLimits returns all limits: those of tags, by name, before those of clients.
type ListLimits struct{}

func (ListLimits) run(ctx context.Context, c *Catalog) (Limits, error) {
	all, err := c.limits(ctx)
	if err != nil || c.Gate == nil {
		return Limits{Limits: all}, err
	}
	type name struct {
		kind, name string
	}
	states := map[name]limit.RuleStatus{}
	for _, r := range c.Gate.Rules() {
		kind := LimitOfTag
		if r.Client {
			kind = LimitOfClient
		}
		states[name{kind, r.Name}] = r
	}
	for i, l := range all {
		s := states[name{l.Kind, l.Name}]
		all[i].Used, all[i].Refused = s.Used, s.Refused
	}
	status := c.Gate.Status()
	return Limits{Limits: all, Node: &status}, nil
}

// SetTagLimit changes the fields that are not nil and returns the limit. With none
// left it is removed. The node that does it applies it at once, other nodes a few seconds
// later. Errors: leaf.ErrUnknownTag, leaf.ErrBadRequest.
type SetTagLimit struct {
	Name string `query:"tag" once:"" json:"-"`
	LimitChange
}

func (q SetTagLimit) run(ctx context.Context, c *Catalog) (Limit, error) {
	if err := cmp.Or(c.canLimit(q.Name, q.LimitChange), c.bound(ctx, q.Name)); err != nil {
		return Limit{}, err
	}
	return c.setLimit(ctx, LimitOfTag, q.Name, q.LimitChange)
}

// canLimit refuses a limit of a tag in several databases, or of a row of it: requests name the tag, and limits are kept with
// rows. One that an earlier version has set can be removed.
func (c *Catalog) canLimit(name string, change LimitChange) error {
	if len(c.Stores) == 0 {
		return nil
	}
	tag := c.Router.TagOfPart(name)
	switch {
	case c.Router.Masters(name) != nil:
		tag = name
	case tag == "", change.ApplyTo(limit.Rule{}) == limit.Rule{}:
		return nil
	}
	return fmt.Errorf("%w: tag %q lives in several databases, and such a tag has no limit; limit its clients: leaf limit set --client NAME", leaf.ErrBadRequest, tag)
}

// SetClientLimit is SetTagLimit for a client, which need not be known; "" stands for
// all clients without a name.
type SetClientLimit struct {
	Name string `query:"client" once:"" json:"-"`
	LimitChange
}

func (q SetClientLimit) run(ctx context.Context, c *Catalog) (Limit, error) {
	return c.setLimit(ctx, LimitOfClient, q.Name, q.LimitChange)
}
