package client

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/client/cache"
	"github.com/leaf-idgen/leaf/client/check"
	"github.com/leaf-idgen/leaf/discovery"
	"github.com/leaf-idgen/leaf/internal/bounded"
	"github.com/leaf-idgen/leaf/internal/spread"
	"github.com/leaf-idgen/leaf/leafpb"
)

const (
	// idleLane is how long a tag must be unused before what is kept about it is dropped.
	idleLane = time.Minute

	// closeGrace is how long Close waits beyond its context for what the client does by
	// itself, which takes no longer unless it is in a function of the application.
	closeGrace = time.Second
)

// Client gets IDs from the nodes of a cluster. It implements leaf.Issuer for segment
// mode. All methods are safe for concurrent use.
type Client struct {
	rt         leaf.Runtime
	log        *journal
	guard      guard
	resolver   Resolver
	refresh    time.Duration
	nodeFile   string
	hedgeAfter time.Duration
	timeout    time.Duration
	dial       dialer
	checkHost  func(discovery.Node) error
	cluster    *cluster
	trace      func(context.Context, Call) func(error) // nil: none

	members  *members
	unlisted atomic.Pointer[string] // why no node is known; nil: some are
	nodes    balance
	budget   *budget
	stats    counters

	waiters waiters

	cache *cache.Cache   // nil: none
	seen  *check.Checker // nil: none

	lanes [3]sync.Map // by mode, the last one of sequences: tag to *lane
	swept time.Time   // of follow

	closed  atomic.Bool
	root    context.Context    //nolint:containedctx // of the flights, which serve many callers: it ends with Close
	cancel  context.CancelFunc // ends what the client does by itself
	fly     func(*lane)
	flights *bounded.Group
	tasks   *bounded.Group // the list, the members, and the watch of each node
}

// New returns a client of the nodes that the resolver lists. It does not wait for the
// list or a connection: calls do, up to their deadline. Error: leaf.ErrBadRequest, for
// an option or a fixed list outside its limits.
func New(nodes Resolver, opts ...Option) (*Client, error) {
	o := defaults()
	for _, set := range opts {
		set(o)
	}
	if err := o.validate(); err != nil {
		return nil, err
	}
	if nodes == nil {
		return nil, leaf.BadField("nodes", "nil", "must be a Resolver")
	}
	if checked, ok := nodes.(interface{ check() error }); ok {
		if err := checked.check(); err != nil {
			return nil, err
		}
	}
	if o.tls != nil {
		o.tls = o.tls.Clone()
	}
	if err := o.checkTrust(nodes); err != nil {
		return nil, err
	}
	log := newJournal(o.runtime, o.logger)
	called := guard{log}
	ctx, cancel := context.WithCancel(context.Background())
	c := &Client{
		rt:         o.runtime,
		log:        log,
		guard:      called,
		resolver:   nodes,
		refresh:    o.refresh,
		nodeFile:   o.nodeFile,
		hedgeAfter: o.hedgeAfter,
		timeout:    o.timeout,
		dial:       o.dial,
		checkHost:  o.checkHost,
		cluster:    o.cluster,
		trace:      called.trace(o.trace),
		flights:    bounded.NewGroup(o.runtime),
		tasks:      bounded.NewGroup(o.runtime),
		nodes:      balance{rt: o.runtime, zone: o.zone},
		budget:     newBudget(o.runtime, o.ratio, o.perSecond),
		swept:      o.runtime.Now(),
		root:       ctx,
		cancel:     cancel,
	}
	if c.dial == nil {
		c.dial = overGRPC(o, called, &tokens{ask: o.token, rt: o.runtime, guard: called, tasks: c.tasks, root: ctx})
	}
	if o.unique {
		c.seen = check.New(check.Config{})
	}
	if o.cache != nil {
		config := *o.cache
		config.Runtime = o.runtime
		held, err := cache.New(uncached{c}, config)
		if err != nil {
			cancel()
			return nil, err
		}
		c.cache = held
	}
	c.nodes.list.Store(new([]*node))
	c.nodes.linked.Store(new([]*node))
	c.members = newMembers(c, o.maxNodes, o.zone)
	c.unlisted.Store(new("the Resolver has not returned yet"))
	c.fly = func(l *lane) { l.fly(ctx, c) }
	c.tasks.Start(func() { c.follow(ctx) })
	c.tasks.Start(func() { c.members.tend(ctx) })
	return c, nil
}

// Next implements leaf.Issuer for segment mode. Calls that run at the same time share
// requests. IDs of one tag that are asked for one after the other grow as long as one
// node answers them; those of different nodes come in any order, unless the tag is in
// strict order.
func (c *Client) Next(ctx context.Context, tag string) (int64, error) {
	if c.cache != nil {
		return c.cache.Next(ctx, tag)
	}
	return c.next(ctx, leafpb.Mode_MODE_SEGMENT, tag)
}

// NextN implements leaf.Issuer for segment mode.
func (c *Client) NextN(ctx context.Context, tag string, n int) ([]leaf.Range, error) {
	if c.cache != nil {
		return c.cache.NextN(ctx, tag, n)
	}
	ranges, _, err := c.nextN(ctx, leafpb.Mode_MODE_SEGMENT, tag, n)
	return ranges, err
}

// Snowflake returns the Issuer of snowflake mode. The tag is a name for the nodes' log
// and limits.
func (c *Client) Snowflake() leaf.Issuer { return snowflake{c} }

type snowflake struct{ c *Client }

// Next implements leaf.Issuer.
func (s snowflake) Next(ctx context.Context, tag string) (int64, error) {
	return s.c.next(ctx, leafpb.Mode_MODE_SNOWFLAKE, tag)
}

// NextN implements leaf.Issuer.
func (s snowflake) NextN(ctx context.Context, tag string, n int) ([]leaf.Range, error) {
	ranges, _, err := s.c.nextN(ctx, leafpb.Mode_MODE_SNOWFLAKE, tag, n)
	return ranges, err
}

// Close ends the client. Calls that come later fail with leaf.ErrNotReady. Those that
// wait are answered first, if ctx allows it, else they fail the same way and Close
// returns the error of ctx. Either way nothing of the client runs after it, but for a
// function of the application that does not return: Close waits for it as long as ctx
// allows, at most a second more, and says so in its error. The Resolver stays open. Close
// may be repeated.
func (c *Client) Close(ctx context.Context) error {
	var held error
	if c.cache != nil {
		held = c.cache.Close(ctx) // its fetches end now
	}
	c.closed.Store(true)
	err := errors.Join(held, c.flights.Idle(ctx))
	c.flights.Close()
	c.tasks.Close()
	c.cancel()
	// What is left ends by itself: it waits with the context that has ended just now.
	rest := errors.Join(c.flights.Idle(context.Background()), c.returned(ctx))
	if err != nil {
		rest = errors.Join(rest, fmt.Errorf("calls were cut off: %w", err))
	}
	if rest = errors.Join(rest, c.log.flush(ctx)); rest != nil {
		return fmt.Errorf("close the client: %w", rest)
	}
	return nil
}

// returned waits for what the client does by itself. That ends with the root context at
// once, but for a function of the application that does not return.
func (c *Client) returned(ctx context.Context) error {
	if c.tasks.Idle(ctx) == nil {
		return nil
	}
	grace, cancel := c.rt.WithTimeout(context.Background(), closeGrace)
	defer cancel()
	if err := c.tasks.Idle(grace); err != nil {
		return fmt.Errorf("a function of the application (Resolver, WithTokenFunc, WithStreamInterceptors) has not returned: %w", err)
	}
	return nil
}

func (c *Client) next(ctx context.Context, mode leafpb.Mode, tag string) (int64, error) {
	w, err := c.wait(ctx, mode, tag, 0)
	if err != nil {
		return 0, err
	}
	id := w.id
	c.waiters.put(w)
	return id, nil
}

func (c *Client) nextN(ctx context.Context, mode leafpb.Mode, tag string, n int) (ranges []leaf.Range, strict bool, err error) {
	if n < 1 || n > leaf.MaxBatch {
		return nil, false, leaf.BadField("count", n, fmt.Sprintf("must be 1 to %d", leaf.MaxBatch))
	}
	w, err := c.wait(ctx, mode, tag, n)
	if err != nil {
		return nil, false, err
	}
	ranges, strict = w.ranges, w.strict
	c.waiters.put(w)
	return ranges, strict, nil
}

// wait returns a waiter that was served IDs.
func (c *Client) wait(ctx context.Context, mode leafpb.Mode, tag string, n int) (_ *waiter, err error) {
	if c.trace != nil {
		call := Call{Tag: tag, Snowflake: mode == leafpb.Mode_MODE_SNOWFLAKE, Count: max(n, 1)}
		if end := c.trace(ctx, call); end != nil {
			defer func() { end(err) }()
		}
	}
	return c.serve(ctx, mode, tag, n)
}

func (c *Client) serve(ctx context.Context, mode leafpb.Mode, tag string, n int) (*waiter, error) {
	if err := ctx.Err(); err != nil {
		return nil, late(nil, err)
	}
	expires, bounded := ctx.Deadline()
	w := c.waiters.get(n, expires)
	l, err := c.join(ctx, mode, tag, w)
	if err != nil {
		return nil, err
	}
	if err := c.rt.Wait(ctx, w.wake, 0); err != nil {
		if left, said := l.leave(w); left {
			return nil, late(said, err)
		}
		// It was served at the same moment.
		if err := c.rt.Wait(context.Background(), w.wake, 0); err != nil {
			return nil, err
		}
	}
	w.pass()
	if w.err == nil {
		return w, nil
	}
	if e, ok := errors.AsType[*lateError](w.err); ok && bounded {
		return nil, late(e.cause, context.DeadlineExceeded) // a flight saw it first
	}
	return nil, w.err
}

// join puts w into the lane of the tag, and begins a flight if there is none.
func (c *Client) join(ctx context.Context, mode leafpb.Mode, tag string, w *waiter) (*lane, error) {
	for {
		if c.closed.Load() {
			return nil, errClosed
		}
		l, err := c.lane(mode, tag)
		if err != nil {
			return nil, err
		}
		start, retired, err := l.join(w)
		if retired {
			continue // a new one takes its place in the map
		}
		if start {
			if c.flights.Enter() {
				l.begin(ctx)
			} else {
				l.abort(errClosed)
			}
		}
		return l, err
	}
}

func (c *Client) lane(mode leafpb.Mode, tag string) (*lane, error) {
	lanes := &c.lanes[mode-leafpb.Mode_MODE_SEGMENT]
	if l, ok := lanes.Load(tag); ok {
		return l.(*lane), nil
	}
	if err := leaf.ValidateTag(tag); err != nil {
		return nil, err
	}
	fresh := &lane{client: c, mode: mode, tag: tag, rt: c.rt, timeout: c.timeout, limit: leaf.MaxBatch}
	if mode == sequenceMode {
		fresh.sections = make([]routing, spread.Sections)
	}
	l, _ := lanes.LoadOrStore(tag, fresh)
	return l.(*lane), nil
}

// launch starts a flight, which the lane has counted already.
func (c *Client) launch(l *lane) {
	if !c.flights.Start(func() { c.fly(l) }) {
		l.abort(errClosed)
	}
}

// sweepLanes drops the lanes of tags that are not used any more.
func (c *Client) sweepLanes(now time.Time) {
	if now.Sub(c.swept) < idleLane {
		return
	}
	c.swept = now
	for i := range c.lanes {
		c.lanes[i].Range(func(tag, l any) bool {
			if l.(*lane).retire() {
				c.lanes[i].CompareAndDelete(tag, l)
			}
			return true
		})
	}
}
