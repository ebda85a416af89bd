package app

import (
	"context"
	"net/netip"
	"os"
	"slices"
	"time"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/internal/config"
	"github.com/leaf-idgen/leaf/internal/limit"
	"github.com/leaf-idgen/leaf/internal/manage"
	"github.com/leaf-idgen/leaf/internal/server/accept"
	"github.com/leaf-idgen/leaf/internal/server/console"
)

// adminConsole is the console of the administrator's listener. Without admin.token it has
// no actions and needs no token: the listener is then on loopback only.
func (a *App) adminConsole(n *node, t times) *console.Console {
	return console.New(console.Config{
		Source: view{t, a, n, false}, Monitor: a.monitor, Logger: a.log,
		Check: func(token string, from netip.Addr) error {
			return a.tokens.admin.MayRead(leaf.Credentials{Token: token, Address: from})
		}, Required: a.tokens.admin.Required,
		Acts: func(token string) bool {
			grant, err := a.tokens.admin.Identify(leaf.Credentials{Token: token})
			return err == nil && grant.Admin() == nil
		},
		Secure: a.administrationTLS() != nil, Live: true,
	})
}

// publicConsole is the console of the public port: for what a client may see, without
// actions, and without streams, each of which would take the connection of a client.
func (a *App) publicConsole(on seat) *console.Console {
	strangers, told := !accept.IsLoopback(on.ln.Addr().String()), forClients
	if !strangers {
		told = nil
	}
	return console.New(console.Config{
		Source: view{on.times, a, on.node, strangers}, Told: told, Monitor: a.monitor, Logger: a.log,
		Check: func(token string, from netip.Addr) error {
			return a.tokens.clients.MayRead(leaf.Credentials{Token: token, Address: from}) // not the gate, which counts and logs requests for IDs
		},
		Required: a.tokens.clients.Required,
		ReadOnly: true, Secure: a.secure != nil,
	})
}

// figures are what the console measures.
type figures struct{ app *App }

// Counters implements console.Meter.
func (m figures) Counters() (c console.Counters) {
	a, st := m.app, m.app.gate.Status()
	c.Refused, c.Waiting = refused(st), st.Segment.Waiting+st.Snowflake.Waiting
	if a.alloc != nil {
		s := a.alloc.Status()
		c.Issued, c.Loads, c.Failures, c.Waits = a.alloc.Issued(), s.Loads, s.Failures, s.Waits
	}
	if a.worker != nil {
		if s := a.worker.Status(); s.Clock.Answered > 0 {
			offset := -s.Clock.Median.Seconds()
			c.Offset = &offset
		}
	}
	return c
}

// refused counts the requests that were refused, for whatever reason.
func refused(st limit.Status) int64 {
	return st.Unauthenticated + st.Blocked + st.Rate + st.Quota + st.Segment.Rejected + st.Snowflake.Rejected
}

// Tags implements console.Meter.
func (m figures) Tags() []console.Usage {
	if m.app.alloc == nil {
		return nil
	}
	all := m.app.alloc.Snapshot()
	out := make([]console.Usage, len(all))
	for i, t := range all {
		out[i] = console.Usage{
			Tag: t.Tag, Store: t.Store, Step: t.Step, Length: t.Length, Current: t.Current, Position: t.Position, Next: t.Next, Stock: t.Stock, Issued: t.Issued,
			Loading: t.Loading, LastLoad: t.LastLoad, LastUse: t.LastUse, Failures: t.Failures, Problem: t.Problem, Fence: t.Fence, Cluster: t.Cluster, Latched: t.Latched,
		}
		if t.Failed != nil {
			out[i].Error = t.Failed.Error()
		}
	}
	return out
}

// maxAlarms bounds how many alarms the console lists: a lost database is one for each tag.
const maxAlarms = 100

// view is a node as a console shows it.
type view struct {
	times
	app  *App
	node *node

	// strangers may look: texts that name hosts, users and files are left out.
	strangers bool
}

// Overview implements console.Source.
func (v view) Overview() console.Overview {
	a, ready := v.app, v.app.ready()
	if v.strangers {
		ready = a.publicReady()
	}
	stage, leaving := a.drain.now()
	o := console.Overview{
		Version: a.opts.Version, NodeID: a.dir.NodeID(), Zone: a.cfg.Node.Zone, Cluster: a.cluster.get(), Now: time.Now().UTC(), Started: a.created.UTC(), Stage: stage,
		Servers: []console.Server{}, Alarms: []console.Alarm{}, Backends: []console.Backend{},
		Modes: []console.Mode{
			{Name: leaf.SegmentMode, Enabled: ready.Segment.Enabled, Ready: ready.Segment.Ready, Reasons: ready.Segment.Reasons},
			{Name: leaf.SnowflakeMode, Enabled: ready.Snowflake.Enabled, Ready: ready.Snowflake.Ready, Reasons: ready.Snowflake.Reasons},
		},
	}
	if leaving || a.files.lostError() != nil {
		o.Reasons = ready.Reasons[:1] // the others are alarms
	}
	active := a.alarms.Active()
	for i, alarm := range active {
		if i >= maxAlarms {
			o.More++
			continue
		}
		shown := console.Alarm{Code: alarm.Code, Subject: alarm.Subject, Text: alarm.Text, Do: alarm.Do}
		if v.strangers {
			shown = console.Alarm{Code: alarm.Code}
		}
		o.Alarms = append(o.Alarms, shown)
	}
	if !v.strangers {
		o.PID, o.DataDir = os.Getpid(), a.dir.Path()
	}
	for _, p := range append(protocols(), protocol{section: config.SectionAdmin, name: "Administration"}) {
		if addr := a.AddrOf(p.section); addr != "" && !v.strangers {
			o.Servers = append(o.Servers, console.Server{Protocol: p.name, Address: addr})
		}
	}
	for _, b := range a.backends(active) {
		if v.strangers {
			b.Name, b.Address, b.Reason = "", "", ""
		}
		o.Backends = append(o.Backends, b)
	}
	o.Refused = refused(a.gate.Status())
	if a.alloc != nil {
		st := a.alloc.Status()
		o.Tags, o.Loads, o.Failures, o.Waits, o.Lost = st.Tags, st.Loads, st.Failures, st.Waits, st.Lost
	}
	return o
}

// backends are what the node depends on. What ails one is the text of its alarm.
func (a *App) backends(active []leaf.Alarm) (all []console.Backend) {
	add := func(kind, name, address, alarm string, healthy bool) {
		b := console.Backend{Kind: kind, Name: name, Address: address, Healthy: healthy}
		i := slices.IndexFunc(active, func(l leaf.Alarm) bool {
			return l.Code == alarm && (l.Subject == name || alarm != leaf.AlarmStore)
		})
		if i >= 0 {
			b.Healthy, b.Reason = false, active[i].Text
		}
		all = append(all, b)
	}
	if a.alloc != nil {
		for i, s := range a.dbs.stores {
			add("store", a.dbs.name(i), s.Redacted(), leaf.AlarmStore, a.alloc.Answers(i))
		}
	}
	if a.fence != nil {
		add("fence", a.cfg.Segment.FencePolicy, "", leaf.AlarmFence, true)
	}
	if a.registry != nil && a.worker != nil {
		add("registry", a.registry.Info().Name, "", leaf.AlarmRegistry, a.worker.Status().Number >= 0)
	}
	if a.presence != nil {
		st := a.presence.announcer.Status()
		add("directory", "", a.presence.where, "", st.Err == nil && !st.Published.IsZero())
	}
	return all
}

// Rows implements console.Source.
func (v view) Rows(ctx context.Context, after string, limit int) (rows any, next string, err error) {
	c, err := v.node.Catalog(ctx)
	if err != nil {
		return nil, "", err
	}
	return c.List(ctx, after, limit)
}

// Workers implements console.Source.
func (v view) Workers(ctx context.Context) (any, error) {
	w, err := manage.Ask(ctx, manage.On(v.node), manage.ListWorkers{})
	if v.strangers {
		for i := range w.Workers {
			w.Workers[i].Address = ""
		}
	}
	return w, err
}
