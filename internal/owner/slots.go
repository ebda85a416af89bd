package owner

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/internal/bounded"
	"github.com/leaf-idgen/leaf/segment"
	"github.com/leaf-idgen/leaf/worker"
)

var _ segment.Terms = (*Slots)(nil)

// Slots is one node's part in the ownership of slots. Make it with New, Start it, and Close it. All
// methods are safe for concurrent use.
type Slots struct {
	cfg     Config
	rt      leaf.Runtime
	log     *slog.Logger
	records worker.Records

	terms  []atomic.Pointer[Term] // by slot; nil: never owned
	routes atomic.Pointer[[]Route]

	tasks *bounded.Group
	base  context.Context //nolint:containedctx // parent of all calls, cancelled when Close begins to give away
	stop  context.CancelFunc
	guard bounded.Guard

	abandoned atomic.Int64 // calls that outlived their deadline

	mu    sync.Mutex
	next  chan struct{} // closed at the end of the next round
	wake  chan struct{}
	first error // of the first round that the registry answered; nil before

	// What follows belongs to the goroutine of the rounds, and after that to Close.
	namespace *worker.StoredNamespace
	session   *worker.Record  // this node's, as it was written last; nil: it has none
	until     time.Duration   // by Elapsed, the end of the lease that its last renewal gave
	past      map[string]bool // nonces of this process's sessions before
	view      *view
	silent    sightings     // of sessions
	orphans   sightings     // of slots
	known     []int64       // the highest epoch of each slot that this node has seen
	longest   time.Duration // the longest lease of a session that this node has seen
	failing   bool
}

// Route says where a slot is served.
type Route struct {
	Address string // of the owner; "": no node is known to own the slot
	Epoch   int64  // a route with a higher one is newer
}

// ElsewhereError says that this node does not own a tag's slot. It is a leaf.ErrNotReady.
type ElsewhereError struct {
	Tag   string
	Route Route
}

// Error implements error.
func (e *ElsewhereError) Error() string {
	if e.Route.Address == "" {
		return fmt.Sprintf("%v: tag %q is in strict order, and no node owns it at the moment", leaf.ErrNotReady, e.Tag)
	}
	return fmt.Sprintf("%v: tag %q is in strict order, and only node %s issues it now", leaf.ErrNotReady, e.Tag, e.Route.Address)
}

func (e *ElsewhereError) Unwrap() error { return leaf.ErrNotReady }

// New prepares the node's part; it makes no call. The records must hold nothing but slots.
func New(records worker.Records, cfg Config) (*Slots, error) {
	cfg = cfg.WithDefaults()
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	s := &Slots{
		cfg: cfg, rt: cfg.Runtime, log: cfg.Logger, records: records,
		terms: make([]atomic.Pointer[Term], cfg.Slots), known: make([]int64, cfg.Slots),
		tasks: bounded.NewGroup(cfg.Runtime), next: make(chan struct{}), wake: make(chan struct{}, 1),
		past: map[string]bool{}, longest: cfg.Lease, silent: sightings{}, orphans: sightings{}, view: newView(nil, cfg.Slots),
	}
	s.guard = bounded.Guard{Runtime: cfg.Runtime, What: "the registry of slots", Limit: 4, Total: &s.abandoned}
	s.publish()
	s.base, s.stop = context.WithCancel(context.Background())
	return s, nil
}

// Start begins the rounds and returns after the first one, or with ctx. Errors, after which the
// Slots must be closed: worker.ErrForeign if the cluster has another number of slots or another name,
// worker.ErrSchema. Without an answer of the registry Start returns nil, and the rounds go on.
func (s *Slots) Start(ctx context.Context) error {
	s.mu.Lock()
	first := s.next
	s.mu.Unlock()
	s.tasks.Start(s.run)
	if err := s.rt.Wait(ctx, first, 0); err != nil {
		return fmt.Errorf("first contact with the registry of slots: %w", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.first
}

// Term implements segment.Terms: it returns the *Term in which this node owns the tag's slot. The
// error is an *ElsewhereError.
func (s *Slots) Term(tag string) (segment.Term, error) {
	slot := Of(tag, len(s.terms))
	if t := s.terms[slot].Load(); t != nil && t.Valid() && s.base.Err() == nil { // a round under way may begin a term after Close
		return t, nil
	}
	return nil, &ElsewhereError{Tag: tag, Route: (*s.routes.Load())[slot]}
}

// Routes returns the owners of all slots, as this node knows them. The result must not be changed.
func (s *Slots) Routes() []Route { return *s.routes.Load() }

// Look reads the registry now, and claims what is this node's share.
func (s *Slots) Look(ctx context.Context) error {
	s.mu.Lock()
	next := s.next
	s.mu.Unlock()
	s.poke()
	return s.rt.Wait(ctx, next, 0)
}

// poke lets the next round begin at once.
func (s *Slots) poke() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// run makes rounds until Close.
func (s *Slots) run() {
	for s.base.Err() == nil {
		s.mu.Lock()
		done := s.next
		s.next = make(chan struct{})
		s.mu.Unlock()
		err := s.round()
		s.mu.Lock()
		if s.first == nil && (errors.Is(err, worker.ErrForeign) || errors.Is(err, worker.ErrSchema)) {
			s.first = err
		}
		s.mu.Unlock()
		s.tell(err)
		close(done)
		_ = s.rt.Wait(s.base, s.wake, s.cfg.every())
	}
}

// tell logs the first error of a row of them, and its end.
func (s *Slots) tell(err error) {
	switch failing := err != nil && s.base.Err() == nil; {
	case failing && !s.failing:
		s.log.Warn("the registry of slots cannot be used; strict tags of this node stop when their terms run out", "error", err)
		s.failing = true
	case !failing && s.failing:
		s.log.Info("the registry of slots answers again")
		s.failing = false
	}
}

// Close ends all terms, at once, then gives the node's slots to others and ends its session, as far as ctx
// allows: what is left of that is ended by the other nodes.
func (s *Slots) Close(ctx context.Context) error {
	s.stop()
	s.endTerms()
	if err := s.tasks.Wait(ctx); err != nil {
		return err
	}
	return s.leave(ctx)
}

// call is one call of the registry, bounded so that no call keeps a renewal waiting for long.
func call[T any](ctx context.Context, s *Slots, f func(context.Context) (T, error)) (T, error) {
	return bounded.Do(ctx, &s.guard, s.cfg.every(), f)
}

// publish makes what the view says of the owners known.
func (s *Slots) publish() {
	routes := make([]Route, len(s.view.slots))
	for k, r := range s.view.slots {
		routes[k].Epoch = r.Floor
		if !r.Released && s.view.alive(r.Nonce) {
			routes[k].Address = s.view.sessions[r.Nonce].Address
		}
	}
	s.routes.Store(&routes)
}
