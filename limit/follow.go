package limit

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/leaf-idgen/leaf"
)

// Source is a Store whose rules a Follower follows.
type Source struct {
	Name  string // for the log
	Store Store
	Holds func(tag string) bool // whether a tag's rule counts if it is found here; nil: every tag's
}

// FollowConfig tunes a Follower. The zero value is usable.
type FollowConfig struct {
	// Interval is how often the rules are read, less a random part of up to half of it,
	// so that the nodes of a cluster do not ask together. 0: 2 s.
	Interval time.Duration

	// Timeout is the deadline of one reading. 0: 2 s.
	Timeout time.Duration

	Runtime leaf.Runtime // nil: leaf.SystemRuntime
	Logger  *slog.Logger // nil: discard
}

// Follower keeps the rules of a Gate as the sources have them. While a source does not
// answer, its last rules stay in force; the log says once when that begins and once when
// it ends. Make it with NewFollower, and run it with Run. All methods are safe for
// concurrent use.
type Follower struct {
	gate    *Gate
	sources []Source
	c       FollowConfig

	mu      sync.Mutex
	reading chan struct{} // closed when the reading under way has ended, nil if there is none
	last    []Rules       // by source
	failed  []error       // by source; nil: the last reading succeeded
}

// NewFollower returns a Follower that has read nothing yet. Rules of tags come from the
// source that holds the tag, those of clients from the first one.
func NewFollower(g *Gate, sources []Source, c FollowConfig) *Follower {
	if c.Interval == 0 {
		c.Interval = 2 * time.Second
	}
	if c.Timeout == 0 {
		c.Timeout = 2 * time.Second
	}
	if c.Runtime == nil {
		c.Runtime = leaf.SystemRuntime()
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	return &Follower{gate: g, sources: sources, c: c, last: make([]Rules, len(sources)), failed: make([]error, len(sources))}
}

// Run reads at once and then again and again until ctx ends.
func (f *Follower) Run(ctx context.Context) {
	if len(f.sources) == 0 {
		return
	}
	for ctx.Err() == nil {
		_ = f.Refresh(ctx) // logged
		_ = f.c.Runtime.Wait(ctx, nil, f.c.Runtime.Jitter(f.c.Interval))
	}
}

// Refresh reads all sources now and puts their rules into force: those of a change that
// was committed before the call began. Its error joins those of the sources that did not
// answer, or is that of ctx.
func (f *Follower) Refresh(ctx context.Context) error {
	if err := f.enter(ctx); err != nil {
		return err
	}
	defer f.leave()
	var errs []error
	for i, s := range f.sources {
		rules, err := f.read(ctx, s.Store)
		if err != nil {
			errs = append(errs, fmt.Errorf("read limits from %s: %w", s.Name, err))
		}
		if ctx.Err() == nil { // else it says nothing about the source
			f.note(i, rules, err)
		}
	}
	f.gate.Set(f.merged())
	return errors.Join(errs...)
}

// enter waits for the reading under way, which may be older than what the caller knows,
// and begins one.
func (f *Follower) enter(ctx context.Context) error {
	for {
		f.mu.Lock()
		under := f.reading
		if under == nil {
			f.reading = make(chan struct{})
			f.mu.Unlock()
			return nil
		}
		f.mu.Unlock()
		if err := f.c.Runtime.Wait(ctx, under, 0); err != nil {
			return fmt.Errorf("read limits: %w", err)
		}
	}
}

func (f *Follower) leave() {
	f.mu.Lock()
	defer f.mu.Unlock()
	close(f.reading)
	f.reading = nil
}

// read is one call of a store, which ends at its deadline.
func (f *Follower) read(ctx context.Context, s Store) (Rules, error) {
	ctx, cancel := f.c.Runtime.WithTimeout(ctx, f.c.Timeout)
	defer cancel()
	return s.Limits(ctx)
}

// note keeps the outcome of a reading, and logs the beginning and the end of an outage.
func (f *Follower) note(i int, rules Rules, err error) {
	f.mu.Lock()
	before := f.failed[i]
	if f.failed[i] = err; err == nil {
		f.last[i] = rules
	}
	f.mu.Unlock()
	log := f.c.Logger.With("store", f.sources[i].Name)
	switch {
	case err != nil && before == nil:
		log.Warn("limits cannot be read; the last ones stay in force", "error", err)
	case err == nil && before != nil:
		log.Info("limits are read again")
	}
}

func (f *Follower) merged() Rules {
	f.mu.Lock()
	defer f.mu.Unlock()
	all := Rules{Tags: make(map[string]Rule)}
	for i, s := range f.sources {
		for tag, r := range f.last[i].Tags {
			if s.Holds == nil || s.Holds(tag) {
				all.Tags[tag] = r
			}
		}
	}
	if len(f.last) > 0 {
		all.Clients = f.last[0].Clients
	}
	return all
}
