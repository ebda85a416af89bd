package discovery

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/leaf-idgen/leaf"
)

// Config tunes an Announcer. The zero value is usable.
type Config struct {
	// TTL is how long an entry outlives its node. It is renewed after a sixth to a third
	// of it. Default 10 s; 3 s to 1 h.
	TTL time.Duration

	// Timeout is the deadline of one call to the directory. Default: a third of TTL, at
	// most 2 s.
	Timeout time.Duration

	// Runtime is the clock. Default: leaf.SystemRuntime().
	Runtime leaf.Runtime

	// Logger receives a warning when an outage of the directory begins, and when it has
	// ended. nil: discarded.
	Logger *slog.Logger
}

func (c Config) withDefaults() (Config, error) {
	const defaultTTL, shortestTTL, longestTimeout = 10 * time.Second, 3 * time.Second, 2 * time.Second
	if c.TTL == 0 {
		c.TTL = defaultTTL
	}
	if c.Timeout == 0 {
		c.Timeout = min(c.TTL/3, longestTimeout)
	}
	if c.Runtime == nil {
		c.Runtime = leaf.SystemRuntime()
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	switch {
	case c.TTL < shortestTTL || c.TTL > MaxTTL:
		return c, leaf.BadField("announcement ttl", c.TTL, fmt.Sprintf("must be %v to %v", shortestTTL, MaxTTL))
	case c.Timeout < 0 || c.Timeout > c.TTL:
		return c, leaf.BadField("announcement timeout", c.Timeout, fmt.Sprintf("must be above 0 and at most the ttl, %v", c.TTL))
	}
	return c, nil
}

// Announcer keeps the entry of one node in a directory: it puts it there when it is
// started and again before its time runs out, as often as it takes after a failure.
// All methods are safe for concurrent use.
type Announcer struct {
	dir Directory
	cfg Config
	rt  leaf.Runtime

	ctx    context.Context //nolint:containedctx // ends with Close, not with a call
	cancel context.CancelFunc
	wake   chan struct{} // holds one: the loop has something to do
	done   chan struct{} // closed when no Put is under way, unless it never returns, and none will be

	puts, removals calls

	mu       sync.Mutex
	node     Node
	change   int // counts the changes of node
	last     Status
	progress chan struct{} // closed and made anew after every Put
	started  bool
	ended    bool // no Put begins any more
}

// Status is what became of the announcements so far.
type Status struct {
	Node      Node      // as it is to be published
	Published time.Time // when a Put last succeeded; zero: never
	Err       error     // of the last Put
	Withdrawn bool

	change int       // of the node that the directory has
	failed time.Time // when a Put last failed; zero: never
}

// NewAnnouncer returns an Announcer that does nothing before Start. The directory stays
// the caller's, to be closed after the Announcer. Error: leaf.ErrBadRequest for a node
// or a setting outside its limits.
func NewAnnouncer(dir Directory, node Node, cfg Config) (*Announcer, error) {
	cfg, err := cfg.withDefaults()
	if err != nil {
		return nil, err
	}
	if err := node.Validate(); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	return &Announcer{
		dir: dir, cfg: cfg, rt: cfg.Runtime, ctx: ctx, cancel: cancel,
		wake: make(chan struct{}, 1), done: make(chan struct{}), progress: make(chan struct{}),
		puts: calls{kind: "Put"}, removals: calls{kind: "Remove"},
		node: node, change: 1,
	}, nil
}

// Start publishes the node in the background, at once. Further calls do nothing.
func (a *Announcer) Start() {
	a.mu.Lock()
	defer a.mu.Unlock()
	if !a.started && !a.ended {
		a.started = true
		a.rt.Go(a.loop)
	}
}

// Status returns the state of this moment.
func (a *Announcer) Status() Status {
	a.mu.Lock()
	defer a.mu.Unlock()
	s := a.last
	s.Node, s.Withdrawn = a.node, a.ended
	return s
}

// SetWeight changes the weight of the node and returns when the directory has it. If
// ctx ends before, the change stands, and is published as soon as the directory
// answers. Errors: leaf.ErrBadRequest; leaf.ErrConflict after Withdraw or Close;
// leaf.ErrNotReady if ctx ended.
func (a *Announcer) SetWeight(ctx context.Context, weight int) error {
	if err := CheckWeight(weight); err != nil {
		return err
	}
	a.mu.Lock()
	a.node.Weight = weight
	a.change++
	wanted := a.change
	a.mu.Unlock()
	a.poke()
	for {
		a.mu.Lock()
		last, ended, progress := a.last, a.ended, a.progress
		a.mu.Unlock()
		switch {
		case last.change >= wanted:
			return nil
		case ended:
			return fmt.Errorf("%w: the node is withdrawn from the directory", leaf.ErrConflict)
		}
		if err := a.rt.Wait(ctx, progress, 0); err != nil {
			if last.Err != nil {
				err = last.Err
			}
			return fmt.Errorf("%w: the weight is %d, and is published as soon as the directory answers: %w", leaf.ErrNotReady, weight, err)
		}
	}
}

// SetCluster changes the cluster's ID in the entry, and has it published at once. It does
// not wait. Error: leaf.ErrBadRequest.
func (a *Announcer) SetCluster(id string) error {
	a.mu.Lock()
	n := a.node
	n.Cluster = id
	err := n.Validate()
	if err == nil {
		a.node = n
		a.change++
	}
	a.mu.Unlock()
	a.poke()
	return err
}

func (a *Announcer) poke() {
	select {
	case a.wake <- struct{}{}:
	default:
	}
}

// loop puts the entry until end.
func (a *Announcer) loop() {
	defer close(a.done)
	const firstRetry = 200 * time.Millisecond
	interval := a.cfg.TTL / 3
	for pause := firstRetry; ; {
		node, change, ended := a.next()
		if ended {
			return
		}
		err := a.call(a.ctx, &a.puts, func(ctx context.Context) error { return a.dir.Put(ctx, node, a.cfg.TTL) })
		a.record(node.ID, change, err)
		wait := interval
		if err != nil {
			wait, pause = pause, min(2*pause, interval)
		} else {
			pause = firstRetry
		}
		if a.rt.Wait(a.ctx, a.wake, a.rt.Jitter(wait)) != nil {
			return
		}
	}
}

func (a *Announcer) next() (n Node, change int, ended bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.node, a.change, a.ended
}

// record notes the outcome of a Put, and says when an outage begins or ends.
func (a *Announcer) record(id string, change int, err error) {
	now := a.rt.Now()
	a.mu.Lock()
	before, ended := a.last, a.ended
	a.last.Err = err
	if err == nil {
		a.last.Published, a.last.change = now, change
	} else {
		a.last.failed = now
	}
	close(a.progress)
	a.progress = make(chan struct{})
	a.mu.Unlock()
	switch {
	case err != nil && before.Err == nil && !ended:
		a.cfg.Logger.Warn("this node cannot be published in the directory of nodes; it is tried again and again", "error", err)
	case err == nil && before.Err != nil:
		a.cfg.Logger.Info("this node is published in the directory of nodes again", "node", id)
	}
}

// end lets no Put begin any more, and reports whether one may have begun.
func (a *Announcer) end() (started bool) {
	a.mu.Lock()
	started = a.started
	if !a.ended {
		a.ended = true
		if !a.started {
			close(a.done)
		}
		close(a.progress) // SetWeight waits for nothing
		a.progress = make(chan struct{})
	}
	a.mu.Unlock()
	a.poke()
	return started
}

// Withdraw takes the entry out for good: no Put begins after it was called, and it
// waits for one that is under way, at most Timeout, before it removes. A Put whose
// outcome is unknown may take effect after it failed: the entry is then removed
// a second time, Timeout after the failure, if ctx lasts that long. Remove is repeated
// until it succeeds or ctx ends; the entry then ends with its ttl. If no Put has ever
// succeeded each of the two removals is tried once, and if the Announcer was never started
// there is none. It may be repeated.
func (a *Announcer) Withdraw(ctx context.Context) error {
	if !a.end() {
		return nil
	}
	if err := a.rt.Wait(ctx, a.done, 0); err != nil {
		return a.left(err)
	}
	err := a.remove(ctx)
	if failed := a.Status().failed; !failed.IsZero() {
		settled := failed.Add(a.cfg.Timeout).Sub(a.rt.Now())
		if settled > 0 && a.rt.Wait(ctx, nil, settled) == nil { // else the first removal counts
			err = a.remove(ctx)
		}
	}
	if err != nil {
		return a.left(err)
	}
	return nil
}

func (a *Announcer) left(err error) error {
	return fmt.Errorf("withdraw node %s from the directory: it may be listed for up to %v: %w", a.Status().Node.ID, a.cfg.TTL, err)
}

// remove repeats Remove until it succeeds. If no entry was ever published, it tries once: a
// registry that never answered must not delay the stop.
func (a *Announcer) remove(ctx context.Context) error {
	const shortest, longest = 100 * time.Millisecond, time.Second
	s := a.Status()
	for pause := shortest; ; pause = min(2*pause, longest) {
		err := a.call(ctx, &a.removals, func(ctx context.Context) error { return a.dir.Remove(ctx, s.Node.ID) })
		if err == nil || s.Published.IsZero() {
			return err
		}
		if ended := a.rt.Wait(ctx, nil, a.rt.Jitter(pause)); ended != nil {
			return errors.Join(err, ended)
		}
	}
}

// Close ends the announcements and leaves the entry to its ttl. It waits for a Put that
// is under way, which it cuts short. It may be repeated, and follow Withdraw.
func (a *Announcer) Close() {
	a.end()
	a.cancel()
	_ = a.rt.Wait(context.Background(), a.done, 0) // that context does not end
}
