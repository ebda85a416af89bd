package limit

import (
	"cmp"
	"slices"
	"sync/atomic"
)

// refusals count requests by the reason for which they were refused.
type refusals struct{ unauthenticated, blocked, rate, quota atomic.Int64 }

// Status is what a Gate did since its start. The numbers are read one after the other.
type Status struct {
	Unauthenticated int64 `json:"unauthenticated,string"` // calls of Open refused
	Blocked         int64 `json:"blocked,string"`         // requests refused by a switch
	Rate            int64 `json:"rate,string"`            // by a rate
	Quota           int64 `json:"quota,string"`           // by a quota

	Segment   Waiting `json:"segment"`
	Snowflake Waiting `json:"snowflake"`
}

// Waiting is the state of the concurrency limit of a mode, in requests.
type Waiting struct {
	Waiting  int   `json:"waiting"`
	Limit    int   `json:"limit"`           // how many may wait now
	Most     int   `json:"-"`               // how many waited at once, at most
	Rejected int64 `json:"rejected,string"` // rejected because all slots were held
}

// Status returns what the gate did so far.
func (g *Gate) Status() Status {
	return Status{
		Unauthenticated: g.refused.unauthenticated.Load(),
		Blocked:         g.refused.blocked.Load(),
		Rate:            g.refused.rate.Load(),
		Quota:           g.refused.quota.Load(),
		Segment:         g.waiting[segment].status(),
		Snowflake:       g.waiting[snowflake].status(),
	}
}

func (a *adaptive) status() Waiting {
	a.mu.Lock()
	defer a.mu.Unlock()
	defer a.look()
	a.adapt(a.rt.Now()) // when no request has come for a while
	return Waiting{Limit: a.limit, Waiting: a.waiting, Most: a.most, Rejected: a.rejected}
}

// RuleStatus is a rule in force, and what it did.
type RuleStatus struct {
	Client  bool   // the rule of a client, not of a tag
	Name    string // of the tag or client
	Rule    Rule
	Used    int64 // IDs issued today (UTC) under the quota, 0 without one
	Refused int64 // requests refused since the rule came into force
}

// Rules returns the rules in force, those of tags before those of clients, by name.
func (g *Gate) Rules() []RuleStatus {
	now := g.rt.Now()
	t := g.table.Load()
	all := make([]RuleStatus, 0, len(t.tags)+len(t.clients))
	add := func(isClient bool, limiters map[string]*limiter) {
		from := len(all)
		for name, l := range limiters {
			s := RuleStatus{Client: isClient, Name: name, Rule: l.rule, Refused: l.refused.Load()}
			if l.quota != nil {
				s.Used = l.quota.used(now)
			}
			all = append(all, s)
		}
		slices.SortFunc(all[from:], func(a, b RuleStatus) int { return cmp.Compare(a.Name, b.Name) })
	}
	add(false, t.tags)
	add(true, t.clients)
	return all
}
