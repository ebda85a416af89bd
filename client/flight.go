package client

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/leaf-idgen/leaf"
)

const (
	// firstPause and longestPause bound the wait after all nodes were asked in vain.
	firstPause   = 10 * time.Millisecond
	longestPause = 200 * time.Millisecond

	// scarcePatience is the least time after which a batch is late while IDs are scarce. A node that has too few IDs waits
	// for more, for a second by default (segment.max-wait). Whatever is asked meanwhile takes the IDs from the batch.
	scarcePatience = 1250 * time.Millisecond

	// lookAgain is how long a flight waits when it can ask no other node at the moment.
	lookAgain = 50 * time.Millisecond
)

// flight carries one batch: it asks a node, asks another one when the answer is late or
// bad, and hands out the first IDs that come. Answers that come later are dropped and
// counted, so whatever is asked twice wastes IDs and repeats none.
//
// One goroutine runs it; nodes answer from others through the batch.
type flight struct {
	client *Client
	lane   *lane
	batch  *batch

	started  time.Time
	next     time.Time // when to ask a node, the first or another one
	asked    int       // attempts so far
	flying   []*attempt
	tried    []*node   // in this round, not to be asked again before its end
	round    int       // rounds in which all nodes failed
	broken   bool      // a node of this round gave no answer
	free     bool      // the next attempt is not charged to the budget
	slow     bool      // counted as slow in the lane
	longAway time.Time // when a node of another zone may be asked too

	opinion   *answer // an error that the other nodes may not share; nil: none
	consulted bool    // another node was asked for a second opinion
}

// attempt is one request of a flight to one node.
type attempt struct {
	request
	node    *node
	batch   *batch
	count   int
	started time.Time
}

// start notes when the flight begins.
func (f *flight) start() {
	f.started = f.client.rt.Now()
	f.next = f.started
}

// try begins a flight in the goroutine of the caller that starts it, which saves a lone
// caller two changes of goroutine. It asks one node and waits for the answer, at most until
// another node is to be asked or ctx ends. It returns whether the batch has ended; if not,
// run continues the flight.
func (f *flight) try(ctx context.Context) (ended bool) {
	f.start()
	if f.step(f.started) {
		f.end(nil)
		return true
	}
	wake := f.expire(f.started)
	for _, t := range []time.Time{f.next, f.started.Add(maxPatience)} { // callers that come meanwhile have deadlines, too
		if t.Before(wake) {
			wake = t
		}
	}
	if len(f.flying) == 0 || f.client.rt.Wait(ctx, f.batch.wake, max(wake.Sub(f.started), 1)) != nil {
		return false
	}
	return f.collect()
}

// run returns when no caller in the batch waits any more.
func (f *flight) run(ctx context.Context) {
	c := f.client
	for {
		if f.collect() {
			return
		}
		now := c.rt.Now()
		expiry := f.expire(now)
		if expiry.IsZero() {
			f.end(nil)
			return
		}
		if !f.next.After(now) && f.step(now) {
			f.end(nil)
			return
		}
		wake := f.next
		if expiry.Before(wake) {
			wake = expiry
		}
		if err := c.rt.Wait(ctx, f.batch.wake, max(wake.Sub(now), 1)); err != nil {
			f.batch.fail(errClosed)
			f.end(nil)
			return
		}
	}
}

// step asks one more node, or says when to try that again. It returns true if the batch
// has ended.
func (f *flight) step(now time.Time) (ended bool) {
	c := f.client
	if f.opinion != nil {
		return f.settle(now) // the second one is late
	}
	hedge := len(f.flying) > 0
	if hedge {
		f.suspect(now)
		if scarce := f.flying[0].started.Add(scarcePatience); now.Before(scarce) && f.lane.lacks(now) {
			f.next = scarce
			return false
		}
		f.markSlow()
	}
	n, remote := f.lane.pick(now, &f.lane.routing, f.tried, hedge)
	switch {
	case n == nil && hedge:
		f.next = now.Add(lookAgain)
		return false
	case n == nil:
		return f.again(now)
	case hedge && remote && now.Before(f.longAway):
		f.next = f.longAway
		return false
	}
	if f.asked == 0 {
		c.budget.earn()
	} else if !f.free {
		if !c.budget.spend(now, &f.lane.share) {
			c.stats.overBudget.Add(1)
			f.next = now.Add(c.rt.Jitter(2 * firstPause))
			return false
		}
		if hedge {
			c.stats.hedges.Add(1)
		} else {
			c.stats.retries.Add(1)
		}
	}
	f.free = false
	if f.asked > 0 {
		f.batch.drop()
		if f.batch.count == 0 {
			return true // the callers have left
		}
	}
	f.ask(n, now)
	return false
}

// again begins a new round after all nodes were asked in vain, or ends the batch if
// every one of them has answered and there is no point in asking any longer.
func (f *flight) again(now time.Time) (ended bool) {
	if len(f.tried) == 0 {
		if why := f.client.noNode(); why != nil {
			f.said(why)
		}
	}
	if len(f.tried) > 0 && !f.broken && (!leaf.ClassOf(f.batch.said).Retryable || now.Sub(f.started) >= f.lane.timeout) {
		f.batch.fail(f.batch.said)
		return true
	}
	f.tried, f.broken = f.tried[:0], false
	f.next = now.Add(f.pause())
	return false
}

// pause returns how long to wait before the next round.
func (f *flight) pause() time.Duration {
	d := f.client.rt.Jitter(min(firstPause<<min(f.round, 8), longestPause))
	f.round++
	return d
}

func (f *flight) ask(n *node, now time.Time) {
	b := f.batch
	a := &attempt{node: n, batch: b, count: b.count, started: now}
	f.asked++
	f.tried = append(f.tried, n)
	if len(f.flying) == 0 {
		f.longAway = now.Add(n.patienceRemote(f.client.hedgeAfter))
	}
	f.flying = append(f.flying, a)
	f.next = now.Add(n.patience(f.client.hedgeAfter))
	n.asked()
	a.request = request{Mode: f.lane.mode, Tag: f.lane.tag, Count: a.count, attempt: a}
	n.link.Ask(&a.request)
}

// answered is called once for each attempt, in time or not.
func (c *Client) answered(a *attempt, ranges []leaf.Range, err error) {
	now := c.rt.Now()
	a.node.answered(now, a.started, err)
	if e, ok := errors.AsType[*brokenError](err); ok {
		c.stats.lost.Add(e.ids)
	}
	if err == nil {
		a.batch.lane.learn(a.Route, c.members, now)
		a.batch.lane.strict.Store(a.Route != nil)
		if err = c.observe(a, ranges); err != nil {
			c.stats.lost.Add(int64(a.count)) // the checker refused them: no caller gets them
		}
	}
	if !a.batch.put(answer{a, ranges, err}) && err == nil {
		c.stats.late.Add(1)
		c.stats.lost.Add(int64(a.count))
	}
}

// collect looks at the answers and returns true if the batch has ended.
func (f *flight) collect() bool {
	for i, answers := 0, f.batch.take(); i < len(answers); i++ {
		a := answers[i]
		f.flying = slices.DeleteFunc(f.flying, func(o *attempt) bool { return o == a.attempt })
		if a.err == nil {
			f.client.late(answers[i+1:])
			f.land(a)
			return true
		}
		if f.refused(a) {
			f.client.late(answers[i+1:])
			f.end(nil)
			return true
		}
	}
	return false
}

// land ends the batch with the IDs of a. When callers wait for the next flight, another
// goroutine hands the IDs out, and this one begins the next flight at once.
func (f *flight) land(a answer) {
	others := f.end(a.attempt.node)
	c, b := f.client, f.batch
	deal := func() {
		c.stats.lost.Add(int64(a.attempt.count) - b.deal(a.ranges, a.attempt.Route != nil))
		b.lane.recycle(b.waiters)
	}
	if !others || !c.flights.Start(deal) {
		deal()
	}
}

// expire fails callers whose time is up, here and in the lane, and returns when to look
// again; zero: no caller of the batch waits any more.
func (f *flight) expire(now time.Time) time.Time {
	next := f.batch.expire(now, f.batch.said)
	if others := f.lane.expire(now, f.batch.said); !next.IsZero() && !others.IsZero() && others.Before(next) {
		next = others
	}
	return next
}

// markSlow notes that the flight's answer is late: callers that come now do not wait for this flight.
func (f *flight) markSlow() {
	if !f.slow {
		f.slow = true
		if f.lane.slowed() {
			f.client.launch(f.lane)
		}
	}
}

// suspect has the health of the nodes checked that take long to answer.
func (f *flight) suspect(now time.Time) {
	for _, a := range f.flying {
		if held := a.node.link.Held(&a.request); held != nil {
			f.said(held)
			continue
		}
		a.node.suspect(now, a.started)
	}
}

// said notes an error for the callers that get no ID.
func (f *flight) said(err error) {
	f.lane.mu.Lock()
	if moreInformative(err, f.batch.said) {
		f.batch.said = err
	}
	f.lane.mu.Unlock()
}

// end returns whether other callers wait for a flight. from is the node that gave the IDs,
// nil if none did.
func (f *flight) end(from *node) (others bool) {
	f.client.late(f.batch.close())
	now := f.client.rt.Now()
	for _, a := range f.flying {
		// Silence about a tag in strict order says nothing about the node: it waits for the tag's owner, after a crash for longer than
		// muteTime.
		if a.node.link.Held(&a.request) == nil && !f.lane.strict.Load() {
			a.node.abandoned(now, a.started, f.client.hedgeAfter)
		}
		if from == nil && !a.node.inDoubt() { // the answer of one that was only slower than another comes soon
			a.node.link.Abandon(&a.request)
		}
	}
	return f.lane.ended(from, f.slow)
}

// late counts answers that no caller waited for.
func (c *Client) late(answers []answer) {
	for _, a := range answers {
		if a.err == nil {
			c.stats.late.Add(1)
			c.stats.lost.Add(int64(a.attempt.count))
		}
	}
}
