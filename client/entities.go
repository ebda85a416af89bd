package client

import (
	"context"
	"errors"
	"time"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/internal/spread"
	"github.com/leaf-idgen/leaf/leafpb"
)

// sequenceMode stands for sequences among the lanes. No node hears it.
const sequenceMode = leafpb.Mode_MODE_SNOWFLAKE + 1

// longestAttempt bounds how long one node may take: longer than a node waits by itself for numbers, 1 s by default.
const longestAttempt = 1500 * time.Millisecond

var _ leaf.Sequencer = (*Client)(nil)

// NextEach implements leaf.Sequencer. A request that a node fails to answer is sent to another node, and the others of
// the call are not. The numbers of an answer that was lost are lost.
func (c *Client) NextEach(ctx context.Context, sequence string, requests []leaf.SequenceRequest) (results []leaf.SequenceResult, err error) {
	if err := leaf.ValidateSequence(sequence, requests); err != nil {
		return nil, err
	}
	if c.trace != nil {
		call := Call{Tag: sequence}
		for _, r := range requests {
			call.Count += r.Count
		}
		if end := c.trace(ctx, call); end != nil {
			defer func() { end(err) }()
		}
	}
	if err := ctx.Err(); err != nil {
		return nil, late(nil, err)
	}
	if c.closed.Load() || !c.flights.Enter() {
		return nil, errClosed
	}
	defer c.flights.End()
	l, err := c.lane(sequenceMode, sequence)
	if err != nil {
		return nil, err
	}
	l.use()
	f := &entities{client: c, lane: l, caller: ctx, requests: requests, results: make([]leaf.SequenceResult, len(requests))}
	return f.run(ctx)
}

// entities is one call for numbers of a sequence. It asks one node after the other for what is left. It sends no hedges:
// a second answer would lose the numbers of the first one for all entities of the call.
type entities struct {
	client   *Client
	lane     *lane
	caller   context.Context //nolint:containedctx // it tells why a call has ended
	requests []leaf.SequenceRequest
	results  []leaf.SequenceResult
	left     []int // numbers of the requests without an answer that counts

	started   time.Time
	asked     bool          // a node was asked
	answered  bool          // a node has answered the call, if only some requests
	tried     []*node       // in this round
	broken    bool          // a node of this round gave no answer
	consulted bool          // a node has given an error that another one may not share
	after     time.Duration // when the node that said "throttled" is to be asked again
	round     int
	said      error // of the last node that refused the whole call, or did not answer
}

// run returns when every request has its answer, or the time is up.
func (f *entities) run(ctx context.Context) ([]leaf.SequenceResult, error) {
	c := f.client
	if _, bounded := ctx.Deadline(); !bounded {
		var cancel context.CancelFunc
		ctx, cancel = c.rt.WithTimeout(ctx, f.lane.timeout)
		defer cancel()
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(c.root, cancel)()
	f.left = make([]int, len(f.requests))
	for i := range f.left {
		f.left[i] = i
	}
	f.started = c.rt.Now()
	for len(f.left) > 0 {
		now := c.rt.Now()
		n, _ := f.lane.pick(now, f.routing(), f.tried, false)
		switch {
		case f.after > 0 || n == nil:
			if why := c.noNode(); len(f.tried) == 0 && why != nil {
				f.said = why
			}
			if deadline, _ := ctx.Deadline(); f.over(now) || f.after > 0 && deadline.Before(now.Add(f.after)) {
				return f.end()
			}
			if c.rt.Wait(ctx, nil, max(f.after, f.pause())) != nil {
				return f.expired()
			}
			f.tried, f.broken, f.after = nil, false, 0
			continue
		case !f.asked:
			c.budget.earn()
		case !c.budget.spend(now, &f.lane.share):
			c.stats.overBudget.Add(1)
			if c.rt.Wait(ctx, nil, c.rt.Jitter(2*firstPause)) != nil {
				return f.expired()
			}
			continue
		default:
			c.stats.retries.Add(1)
		}
		f.asked = true
		f.ask(ctx, n)
		if len(f.left) > 0 && ctx.Err() != nil {
			return f.expired()
		}
	}
	return f.end()
}

// routing returns what is known of the owner of one entity: the first one that still has no answer.
func (f *entities) routing() *routing {
	return &f.lane.sections[spread.Section(f.requests[f.left[0]].Entity)]
}

// over reports whether there is no point in asking again: every node has answered, and either none of the errors may
// pass, or they have lasted as long as a call may take.
func (f *entities) over(now time.Time) bool {
	if !f.asked || f.broken {
		return false
	}
	passes := false
	for _, i := range f.left {
		passes = passes || leaf.ClassOf(f.results[i].Err).Retryable
	}
	return !passes || now.Add(f.after).Sub(f.started) >= f.lane.timeout
}

func (f *entities) pause() time.Duration {
	d := f.client.rt.Jitter(min(firstPause<<min(f.round, 8), longestPause))
	f.round++
	return d
}

// ask asks a node for what is left. It takes half of the time that is left at most, so that a node which does not answer
// leaves time for another one.
func (f *entities) ask(ctx context.Context, n *node) {
	c := f.client
	started := c.rt.Now()
	limit := longestAttempt
	if deadline, ok := ctx.Deadline(); ok {
		limit = min(limit, deadline.Sub(started)/2)
	}
	requests := make([]leaf.SequenceRequest, len(f.left))
	for k, i := range f.left {
		requests[k] = f.requests[i]
	}
	f.tried = append(f.tried, n)
	n.asked()
	bounded, cancel := c.rt.WithTimeout(ctx, max(limit, 1))
	defer cancel()
	routing := f.routing()
	got, route, err := n.link.Sequence(bounded, routing.owner(c.members, started) == n, f.lane.tag, requests)
	now := c.rt.Now()
	if bounded.Err() != nil && err != nil && !isOwn(err) {
		n.answered(now, time.Time{}, errGivenUp)
		n.suspect(now, started)
		// Less time is no evidence: the caller may have little. Nor is the silence of a node that has answered other calls
		// meanwhile: the entities may have no owner at the moment.
		if ctx.Err() == nil && now.Sub(started) >= maxPatience && n.silentSince(started) {
			f.lane.shun(n, now)
		}
		err = &brokenError{cause: errors.New("the node has not answered in time")}
	} else {
		n.answered(now, time.Time{}, err)
	}
	if err == nil && got[0].Err == nil {
		routing.learn(route, c.members, now)
	} else {
		routing.forget(n)
	}
	f.sort(n, now, got, err)
}

// silentSince reports whether the node has answered nothing since then, but for health checks.
func (n *node) silentSince(then time.Time) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return !n.heard.After(then)
}

// sort puts the results of a node, or its error for all that is left, in their places.
func (f *entities) sort(n *node, now time.Time, got []leaf.SequenceResult, err error) {
	if err != nil {
		// A function of the application that hangs explains the silence of the attempts that follow.
		explained := isOwn(f.said) && isBroken(err) && !isOwn(err)
		if !explained && moreInformative(err, f.said) {
			f.said = err
		}
		got = make([]leaf.SequenceResult, len(f.left))
		for k := range got {
			got[k].Err = f.said
		}
	} else {
		f.answered = true
	}
	f.broken = f.broken || isBroken(err)
	left, doubts, refused := f.left[:0], false, false
	for k, i := range f.left {
		if got[k].Err == nil || moreInformative(got[k].Err, f.results[i].Err) {
			f.results[i] = got[k]
		}
		if got[k].Err == nil {
			continue
		}
		v := verdictOf(got[k].Err)
		if v == final || v == doubted && f.consulted {
			continue
		}
		left = append(left, i)
		doubts = doubts || v == doubted
		refused = refused || !isBroken(got[k].Err) && !isOwn(got[k].Err)
		if v == throttled {
			f.after = max(f.after, leaf.RetryAfter(got[k].Err), firstPause)
		}
	}
	f.left, f.consulted = left, f.consulted || doubts
	if refused && len(left) == len(got) { // that some entities wait for their owner says nothing about the node
		f.lane.shun(n, now)
	}
}

// expired ends the call before all requests have an answer.
func (f *entities) expired() ([]leaf.SequenceResult, error) {
	end := func(said error) error { return late(said, f.caller.Err()) }
	if f.client.root.Err() != nil {
		end = func(error) error { return errClosed }
	}
	f.said = end(f.said)
	for _, i := range f.left {
		f.results[i].Err = end(f.results[i].Err)
	}
	return f.end()
}

// end returns the results, or the error of a call of which no node has answered any request.
func (f *entities) end() ([]leaf.SequenceResult, error) {
	if !f.answered {
		return nil, f.said
	}
	return f.results, nil
}
