package app

import (
	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/internal/limit"
)

// openLimits puts the gate in front of the engines, which may be nil.
func (a *App) openLimits() (err error) {
	a.issuers = leaf.Issuers{Segment: leaf.Disabled("segment"), Snowflake: leaf.Disabled("snowflake")}
	if a.alloc != nil {
		all, err := a.dbs.issuer(a.alloc, a.cfg.Segment)
		if err != nil {
			return err
		}
		a.issuers.Segment = a.order.inFrontOf(a.files.guard(all), int(a.cfg.Limit.MaxWaiting))
		a.issuers.Sequence = a.openSequences()
	}
	if a.worker != nil {
		a.issuers.Snowflake = a.files.guard(a.worker)
	}
	c := a.cfg.Limit
	if a.gate, err = limit.New(a.issuers, limit.Config{
		Tokens: a.tokens.clients, TargetWait: c.TargetWait, MaxWaiting: int(c.MaxWaiting),
		Databases: len(a.dbs.stores), DatabaseOf: a.dbs.router.Route,
	}); err != nil {
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

func (a *App) limitSources() (all []limit.Source) {
	c := a.dbs.catalog(a.cfg.Segment.LoadTimeout, nil)
	for i, s := range c.Stores {
		all = append(all, limit.Source{Name: c.Router.Stores()[i].Name, Store: s, Holds: func(tag string) bool { return c.Holds(i, tag) }})
	}
	return all
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
		{"waiting", st.Segment.Rejected + st.Snowflake.Rejected},
	} {
		s.counter(refused, help, r.n, "reason", r.reason)
	}
	for _, m := range a.waiting(st) {
		s.gauge("leaf_requests_waiting", "Requests that wait for IDs.", float64(m.now.Waiting), "mode", m.mode)
	}
	for _, m := range a.waiting(st) {
		s.gauge("leaf_requests_waiting_limit", "Requests that may wait for IDs now.", float64(m.now.Limit), "mode", m.mode)
	}
}

type modeWaiting struct {
	mode string
	now  limit.Waiting
}

// waiting are the concurrency limits of the modes that this node serves.
func (a *App) waiting(st limit.Status) (all []modeWaiting) {
	if a.alloc != nil {
		all = append(all, modeWaiting{"segment", st.Segment})
	}
	if a.worker != nil {
		all = append(all, modeWaiting{"snowflake", st.Snowflake})
	}
	return all
}
