package limit

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/internal/bounded"
)

// Source is a Store whose rules a Follower follows.
type Source struct {
	Name  string // for the log
	Store Store
	Holds func(tag string) bool // whether a tag's rule is in force if it is found here; nil: every tag's

	// Issues reports whether the engine gets IDs from the source now. Where it does and
	// the rules still cannot be read, requests are not held for them much longer
	// (Follower.Access). nil: it never does.
	Issues func() bool
}

// FollowConfig tunes a Follower. The zero value is usable.
type FollowConfig struct {
	// Interval is how often the rules are read, less a random part of up to half of it,
	// so that the nodes of a cluster do not ask together. 0: 2 s.
	Interval time.Duration

	// Timeout is the deadline of one reading. 0: 2 s.
	Timeout time.Duration

	// MaxWait is how long one request waits for the first reading, and MaxWaiting how
	// many do at once (Access). 0: 1 s and 10,000.
	MaxWait    time.Duration
	MaxWaiting int

	Runtime leaf.Runtime // nil: leaf.SystemRuntime
	Logger  *slog.Logger // nil: discard
}

func (c FollowConfig) withDefaults() FollowConfig {
	if c.Interval == 0 {
		c.Interval = 2 * time.Second
	}
	if c.Timeout == 0 {
		c.Timeout = 2 * time.Second
	}
	if c.MaxWait == 0 {
		c.MaxWait = time.Second
	}
	if c.MaxWaiting == 0 {
		c.MaxWaiting = 10_000
	}
	if c.Runtime == nil {
		c.Runtime = leaf.SystemRuntime()
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	return c
}

// firstInterval is the interval, at most, until the first reading of a source succeeded:
// requests wait for it.
const firstInterval = 250 * time.Millisecond

// Follower keeps the rules of a Gate as the sources have them, each by itself, so that none
// waits for another. While a source does not answer, its last rules stay in force; the
// log says once when that begins and once when it ends. Make it with NewFollower, and run
// it with Run. All methods are safe for concurrent use.
type Follower struct {
	gate    *Gate
	c       FollowConfig
	sources []*followed
	start   start

	mu sync.Mutex // of last, of all sources; held while they are put into force
}

// maxHanging is how many readings of one source may hang beyond their deadline before no other one begins.
const maxHanging = 2

// followed is a source and what is known of it.
type followed struct {
	Source

	calls bounded.Guard

	last Rules // guarded by Follower.mu

	mu      sync.Mutex
	reading chan struct{} // closed when the reading under way has ended, nil if there is none

	// Only the goroutine that reads uses these.
	failed  error     // nil: the last reading succeeded
	issuing time.Time // since when it issues IDs although its rules were never read; zero: it does not

	asked chan struct{} // closed when the first reading has ended, whatever the outcome
	known chan struct{} // closed when its rules are in force, or no request waits for them any more
}

// NewFollower returns a Follower that has read nothing yet. Rules of tags come from the
// source that holds the tag, those of clients from the first one.
func NewFollower(g *Gate, sources []Source, c FollowConfig) *Follower {
	f := &Follower{gate: g, c: c.withDefaults()}
	for _, s := range sources {
		f.sources = append(f.sources, &followed{
			Source: s, asked: make(chan struct{}), known: make(chan struct{}),
			calls: bounded.Guard{Runtime: f.c.Runtime, What: fmt.Sprintf("store %q", s.Name), Limit: maxHanging},
		})
	}
	f.start.clients = make(chan struct{})
	f.start.over.Store(len(sources) == 0)
	return f
}

// Run reads at once and then again and again until ctx ends. Call it once.
func (f *Follower) Run(ctx context.Context) {
	if len(f.sources) == 0 {
		return
	}
	var all sync.WaitGroup
	for _, s := range f.sources {
		all.Go(func() { f.follow(ctx, s) })
	}
	all.Go(func() { f.awaitClients(ctx) })
	all.Wait()
}

func (f *Follower) follow(ctx context.Context, s *followed) {
	for ctx.Err() == nil {
		_ = f.refresh(ctx, s) // logged
		interval := f.c.Interval
		if !isClosed(s.known) {
			interval = min(interval, firstInterval)
		}
		_ = f.c.Runtime.Wait(ctx, nil, f.c.Runtime.Jitter(interval))
	}
}

// Refresh reads all sources now and puts their rules into force: those of a change that
// was committed before the call began. Its error joins those of the sources that did not
// answer, or is that of ctx.
func (f *Follower) Refresh(ctx context.Context) error {
	errs := make([]error, len(f.sources))
	var all sync.WaitGroup
	for i, s := range f.sources {
		all.Go(func() { errs[i] = f.refresh(ctx, s) })
	}
	all.Wait()
	return errors.Join(errs...)
}

// refresh is Refresh for one source.
func (f *Follower) refresh(ctx context.Context, s *followed) error {
	if err := f.enter(ctx, s); err != nil {
		return err
	}
	defer s.leave()
	rules, err := bounded.Do(ctx, &s.calls, f.c.Timeout, s.Store.Limits) // which ends soon after its deadline
	if err != nil {
		err = fmt.Errorf("read limits from %s: %w", s.Name, err)
	}
	if err != nil && ctx.Err() != nil {
		return err // which says nothing about the source
	}
	if err == nil {
		f.putIntoForce(s, rules)
	}
	f.note(s, err)
	return err
}

// enter waits for the reading under way, which may be older than what the caller knows,
// and begins one.
func (f *Follower) enter(ctx context.Context, s *followed) error {
	for {
		s.mu.Lock()
		under := s.reading
		if under == nil {
			s.reading = make(chan struct{})
			s.mu.Unlock()
			return nil
		}
		s.mu.Unlock()
		if err := f.c.Runtime.Wait(ctx, under, 0); err != nil {
			return fmt.Errorf("read limits: %w", err)
		}
	}
}

func (s *followed) leave() {
	s.mu.Lock()
	defer s.mu.Unlock()
	close(s.reading)
	s.reading = nil
}

// putIntoForce puts the rules of one source into force, with the last ones of the others.
// The lock keeps the order of two sources that were read side by side.
func (f *Follower) putIntoForce(s *followed, rules Rules) {
	f.mu.Lock()
	defer f.mu.Unlock()
	s.last = rules
	all := Rules{Tags: make(map[string]Rule), Clients: f.sources[0].last.Clients}
	for _, s := range f.sources {
		for tag, r := range s.last.Tags {
			if s.holds(tag) {
				all.Tags[tag] = r
			}
		}
	}
	f.gate.Set(all)
}

func (s *followed) holds(tag string) bool { return s.Holds == nil || s.Holds(tag) }

// note keeps the outcome of a reading whose rules are in force, and logs the beginning and
// the end of an outage.
func (f *Follower) note(s *followed, err error) {
	log, before := f.c.Logger.With("store", s.Name), s.failed
	s.failed = err
	switch {
	case err != nil && before == nil && isClosed(s.known):
		log.Warn("limits cannot be read; the last ones stay in force", "error", err)
	case err != nil && before == nil:
		log.Warn("limits cannot be read yet; the tags of this store wait for them", "error", err)
	case err == nil && before != nil:
		log.Info("limits can be read again")
	}
	f.noteStart(s, err)
}
