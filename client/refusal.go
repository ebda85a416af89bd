package client

import (
	"errors"
	"time"

	"github.com/leaf-idgen/leaf"
)

// refused looks at an error and returns true if the batch has ended with it.
func (f *flight) refused(a answer) bool {
	b, now := f.batch, f.client.rt.Now()
	f.said(a.err)
	if forFewer(a.err) && f.halve() {
		f.tried, f.broken, f.opinion = f.tried[:0], false, nil
		f.free = true // at worst there is one request for each caller
		f.next = now
		return false
	}
	v := verdictOf(a.err)
	if v != final && !isBroken(a.err) && !isOwn(a.err) {
		f.lane.shun(a.attempt.node, now)
	}
	if v != final && !isOwn(a.err) {
		f.lane.forget(a.attempt.node)
	}
	switch v {
	case final:
		b.fail(a.err)
		return true
	case doubted, throttled:
		if f.opinion == nil || outweighs(a.err, f.opinion.err) {
			f.opinion = &a
		}
	case elsewhere:
		if errors.Is(a.err, leaf.ErrExhausted) && f.lane.shrink(b, 4) { // to a quarter: each attempt takes long, and callers have little time
			f.lane.lack(now)
		}
		f.broken = f.broken || isBroken(a.err)
		f.next = now
		if f.opinion == nil {
			return false
		}
	}
	if len(f.flying) > 0 || f.consult(now) {
		return false
	}
	return f.settle(now)
}

// forFewer says whether the node may allow, or have, the IDs of one caller of a batch, and never those of all.
func forFewer(err error) bool {
	return errors.Is(err, leaf.ErrBadRequest) || errors.Is(err, leaf.ErrOverflow)
}

// halve makes the batch smaller by half, as lane.shrink does. The callers that leave it do not wait for this flight if it is
// slow.
func (f *flight) halve() bool {
	if !f.lane.shrink(f.batch, 2) {
		return false
	}
	if f.lane.start() {
		f.client.launch(f.lane)
	}
	return true
}

// outweighs says whether of two opinions a is the one to go by: the one that promises
// IDs, and the sooner the better.
func outweighs(a, b error) bool {
	if verdictOf(b) != throttled {
		return verdictOf(a) == throttled
	}
	return verdictOf(a) == throttled && leaf.RetryAfter(a) < leaf.RetryAfter(b)
}

// consult asks one other node for a second opinion, within the budget.
func (f *flight) consult(now time.Time) bool {
	c := f.client
	if f.consulted {
		return false
	}
	n, _ := c.nodes.pick(now, f.lane.others(now, f.tried, longestShun), true)
	if n == nil || !c.budget.spend(now, &f.lane.share) {
		return false
	}
	f.batch.drop()
	if f.batch.count == 0 {
		return false // they left a moment ago
	}
	f.consulted = true
	c.stats.retries.Add(1)
	f.ask(n, now)
	return true
}

// settle goes by the opinion of the nodes that were asked: it ends the batch, or waits as
// long as a limit says.
func (f *flight) settle(now time.Time) (ended bool) {
	b, a := f.batch, f.opinion
	f.opinion = nil
	if verdictOf(a.err) == doubted {
		b.fail(a.err)
		return true
	}
	f.tried, f.broken = f.tried[:0], false
	f.free = true // the node says when, so it is no storm
	f.next = now
	if f.halve() {
		return false
	}
	after := leaf.RetryAfter(a.err)
	if after == 0 {
		after = f.pause()
	}
	f.next = now.Add(after)
	if f.next.Sub(f.started) > f.lane.timeout {
		b.fail(a.err)
		return true
	}
	f.lane.refused(now, f.next, a.attempt.count, a.err)
	f.markSlow() // others may get what this one does not
	for _, w := range b.waiters {
		if w.state.Load() == waiting && w.expires.Before(f.next) {
			w.fail(a.err)
		}
	}
	return false
}
