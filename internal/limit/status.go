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

	Segment   Room `json:"segment"`
	Snowflake Room `json:"snowflake"`
}

// Room is the state of the waiting room of a mode, in requests.
type Room struct {
	Waiting int   `json:"waiting"`
	Limit   int   `json:"limit"`       // how many may wait now
	Most    int   `json:"-"`           // how many waited at once, at most
	Shed    int64 `json:"shed,string"` // turned away because the room was full
}

// Status returns what the gate did so far.
func (g *Gate) Status() Status {
	return Status{
		Unauthenticated: g.refused.unauthenticated.Load(),
		Blocked:         g.refused.blocked.Load(),
		Rate:            g.refused.rate.Load(),
		Quota:           g.refused.quota.Load(),
		Segment:         g.rooms[segment].status(),
		Snowflake:       g.rooms[snowflake].status(),
	}
}

func (r *room) status() Room {
	r.mu.Lock()
	defer r.mu.Unlock()
	return Room{Limit: r.limit, Waiting: r.waiting, Most: r.most, Shed: r.shed}
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
