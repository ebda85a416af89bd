package limit

import (
	"fmt"
	"sync/atomic"
	"time"

	"github.com/leaf-idgen/leaf"
)

// table is the Rules that are in force, with what they have counted. It is never changed,
// only replaced.
type table struct {
	tags, clients map[string]*limiter

	spent [2]map[string]*counter // what was counted today under quotas that are no more, of tags and of clients
}

// limiter is one rule in force. What it counts is shared with the limiter that follows
// it, as far as the limits are the same.
type limiter struct {
	rule    Rule
	of      string   // e.g. `tag "orders"`
	rate    *bucket  // nil: no limit
	quota   *counter // nil: no limit
	refused *atomic.Int64
}

// next returns the table for new rules.
func (t *table) next(r Rules, now time.Time) *table {
	next := new(table)
	next.tags, next.spent[0] = limiters("tag", r.Tags, t.tags, t.spent[0], now)
	next.clients, next.spent[1] = limiters("client", r.Clients, t.clients, t.spent[1], now)
	return next
}

// limiters returns those of rules, and what was counted today for names without a quota
// now. The count of a day belongs to the name: a quota that is raised at noon, or removed
// and set again, is not given twice.
func limiters(kind string, rules map[string]Rule, old map[string]*limiter, spent map[string]*counter, now time.Time) (all map[string]*limiter, left map[string]*counter) {
	left = map[string]*counter{}
	for name, c := range spent {
		if c.used(now) > 0 {
			left[name] = c
		}
	}
	for name, l := range old {
		if l.quota != nil {
			left[name] = l.quota // with what a request under way may still count
		}
	}
	all = make(map[string]*limiter, len(rules))
	for name, rule := range rules {
		rule = rule.sane()
		if rule == (Rule{}) {
			continue
		}
		l := &limiter{rule: rule, of: fmt.Sprintf("%s %q", kind, name), refused: new(atomic.Int64)}
		before := old[name]
		if before == nil {
			before = &limiter{refused: l.refused}
		}
		l.refused = before.refused
		if rule.Rate > 0 {
			l.rate = before.rate
			if before.rule.Rate != rule.Rate {
				l.rate = newBucket(rule.Rate, now)
			}
		}
		if rule.Quota > 0 {
			if l.quota = left[name]; l.quota == nil {
				l.quota = new(counter)
			}
			delete(left, name)
		}
		all[name] = l
	}
	return all, left
}

// take takes n IDs from rate and quota, or from neither.
func (l *limiter) take(n int64, now time.Time, refused *refusals) error {
	if l.rate != nil {
		if most := l.rate.most(); n > most {
			return leaf.BadField("count", n, fmt.Sprintf("must be 1 to %d: the limit of %s is %d IDs per second", most, l.of, l.rule.Rate))
		}
		if wait, ok := l.rate.take(n, now); !ok {
			return l.refuse(&refused.rate, fmt.Sprintf("the limit of %s is %d IDs per second", l.of, l.rule.Rate), wait)
		}
	}
	if l.quota == nil || l.quota.take(n, l.rule.Quota, now) {
		return nil
	}
	if l.rate != nil {
		l.rate.refund(n)
	}
	if n > l.rule.Quota {
		return leaf.BadField("count", n, fmt.Sprintf("must be 1 to %d: the limit of %s is %d IDs per day", l.rule.Quota, l.of, l.rule.Quota))
	}
	return l.refuse(&refused.quota, fmt.Sprintf("the limit of %s is %d IDs per day (UTC)", l.of, l.rule.Quota), untilMidnight(now))
}

func (l *limiter) refuse(reason *atomic.Int64, limit string, after time.Duration) error {
	l.refused.Add(1)
	reason.Add(1)
	return leaf.Throttled(limit, roundUp(after))
}

// roundUp returns d in whole milliseconds, as clients see it, rounded up: a client that waits
// for less comes too early.
func roundUp(d time.Duration) time.Duration {
	return (d + time.Millisecond - 1).Truncate(time.Millisecond)
}

// refund undoes take.
func (l *limiter) refund(n int64, now time.Time) {
	if l.rate != nil {
		l.rate.refund(n)
	}
	if l.quota != nil {
		l.quota.refund(n, now)
	}
}

func (l *limiter) blocked(refused *refusals) error {
	if !l.rule.Blocked {
		return nil
	}
	l.refused.Add(1)
	refused.blocked.Add(1)
	return fmt.Errorf("%w: %s", leaf.ErrBlocked, l.of)
}
