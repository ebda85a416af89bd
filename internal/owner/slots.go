package owner

import (
	"context"
	"crypto/subtle"
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
	secret atomic.Pointer[string] // nonce of the session; nil: there is none

	tasks *bounded.Group
	base  context.Context //nolint:containedctx // parent of all calls, cancelled when Close begins to give away
	stop  context.CancelFunc
	guard bounded.Guard

	wanted []atomic.Bool // by slot: a caller waits for its owner
	wake   chan struct{}

	mu           sync.Mutex
	begun, ended int           // rounds
	news         chan struct{} // closed when the owners that are known, or these numbers, change
	first        error         // of the first round that the registry answered; nil before

	// What follows belongs to the goroutine of the rounds, and after that to Close.
	namespace *worker.StoredNamespace
	session   *worker.Record  // this node's, as it was written last; nil: it has none
	until     time.Duration   // by Elapsed, the end of the lease that its last renewal gave
	past      map[string]bool // nonces of this process's sessions before
	view      *view
	silent    sightings     // of sessions
	orphans   sightings     // of slots
	damage    sightings     // of slots whose records cannot be read
	known     []int64       // the highest epoch of each slot that this node has seen
	longest   time.Duration // the longest lease of a session that this node has seen
	shared    shared        // this node's address
	failing   bool          // the last round failed
	since     time.Duration // by Elapsed, when the first of the rounds that failed ended
}

// Route says where a slot is served.
type Route struct {
	Address string // of the owner; "": no node is known to own the slot
	Epoch   int64  // a route with a higher one is newer

	// Secret shows the owner that a call comes from a node of the cluster, see Slots.Admits. It is not to be logged.
	Secret string
}

// ElsewhereError says that this node does not own a tag's slot. It is a leaf.ErrNotReady.
type ElsewhereError struct {
	Tag   string
	Route Route
}

// Error implements error. The text goes to clients, so it names no host.
func (e *ElsewhereError) Error() string {
	if e.Route.Address == "" {
		return fmt.Sprintf("%v: tag %q is in strict order, and no node owns it at the moment", leaf.ErrNotReady, e.Tag)
	}
	return fmt.Sprintf("%v: tag %q is in strict order, and another node issues it now", leaf.ErrNotReady, e.Tag)
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
		tasks: bounded.NewGroup(cfg.Runtime), wanted: make([]atomic.Bool, cfg.Slots), wake: make(chan struct{}, 1), news: make(chan struct{}),
		past: map[string]bool{}, longest: cfg.Lease, silent: sightings{}, orphans: sightings{}, damage: sightings{}, view: newView(nil, cfg.Slots),
	}
	s.guard = bounded.Guard{Runtime: cfg.Runtime, What: "the registry of slots", Limit: 4}
	s.publish()
	s.base, s.stop = context.WithCancel(context.Background())
	return s, nil
}

// Start begins the rounds and returns after the first one, or with ctx. Errors: worker.ErrForeign if the
// cluster has another number of slots or another name, worker.ErrSchema. Without an answer of the registry
// Start returns nil. The rounds go on in any case, until Close.
func (s *Slots) Start(ctx context.Context) error {
	s.tasks.Start(s.run)
	if err := s.await(ctx, 1, never); err != nil {
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

// Admits reports whether a call shows that it comes from a node: only nodes read the registry, and find
// there the nonce of this node's session.
func (s *Slots) Admits(secret string) bool {
	own := s.secret.Load()
	return own != nil && subtle.ConstantTimeCompare([]byte(*own), []byte(secret)) == 1
}

// Owned returns how many slots this node owns.
func (s *Slots) Owned() (n int) {
	for k := range s.terms {
		if t := s.terms[k].Load(); t != nil && t.Valid() {
			n++
		}
	}
	return n
}

// Look reads the registry now, and claims what is this node's share.
func (s *Slots) Look(ctx context.Context) error {
	return s.await(ctx, s.poke(), never)
}

// Find is Look for a caller that waits for the owner of one tag: the tag's slot comes before the others,
// and Find returns as soon as this node owns it, or knows of a new owner.
func (s *Slots) Find(ctx context.Context, tag string) error {
	slot := Of(tag, len(s.terms))
	before := s.Routes()[slot].Epoch
	s.wanted[slot].Store(true)
	return s.await(ctx, s.poke(), func() bool {
		if t := s.terms[slot].Load(); t != nil && t.Valid() {
			return true
		}
		now := s.Routes()[slot]
		return now.Epoch != before && now.Address != s.cfg.Address
	})
}

// await returns at the end of the round of this number, or when found holds.
func (s *Slots) await(ctx context.Context, round int, found func() bool) error {
	for {
		s.mu.Lock()
		ended, news := s.ended, s.news
		s.mu.Unlock()
		switch {
		case ended >= round, found():
			return nil
		case s.base.Err() != nil:
			return fmt.Errorf("%w: shutting down", leaf.ErrNotReady)
		}
		if err := s.rt.Wait(ctx, news, 0); err != nil {
			return err
		}
	}
}

func never() bool { return false }

// tellNews lets all that await look again.
func (s *Slots) tellNews(change func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change()
	close(s.news)
	s.news = make(chan struct{})
}

// betweenRounds is the shortest pause between two rounds, however many callers wait for an owner.
const betweenRounds = 5 * time.Millisecond

// poke lets the next round begin soon, and returns its number.
func (s *Slots) poke() (round int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	select {
	case s.wake <- struct{}{}:
	default:
	}
	return s.begun + 1
}

// begin counts a round. It is the one of all pokes before, so none of them is left to hurry it: see share.
func (s *Slots) begin() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.begun++
	select {
	case <-s.wake:
	default:
	}
}

// run makes rounds until Close.
func (s *Slots) run() {
	for s.base.Err() == nil {
		s.begin()
		began := s.rt.Now()
		err := s.round()
		s.mu.Lock()
		if s.first == nil && (errors.Is(err, worker.ErrForeign) || errors.Is(err, worker.ErrSchema)) {
			s.first = err
		}
		s.mu.Unlock()
		s.tell(err)
		s.tellNews(func() { s.ended = s.begun })
		_ = s.rt.Wait(s.base, nil, betweenRounds)
		if rest := s.cfg.every() - s.rt.Now().Sub(began); rest > 0 {
			_ = s.rt.Wait(s.base, s.wake, rest)
		}
	}
}

// tell logs the first error of a row of them, and its end. The alarm begins when the terms have run out.
func (s *Slots) tell(err error) {
	failing := err != nil && s.base.Err() == nil
	switch {
	case failing && !s.failing:
		s.log.Warn("the registry of slots cannot be used; strict tags of this node stop when it stays so for a lease", "error", err)
	case !failing && s.failing:
		s.log.Info("the registry of slots answers again")
	}
	now := s.cfg.Elapsed()
	if !failing || !s.failing {
		s.since = now
	}
	switch s.failing = failing; {
	case !failing:
		s.cfg.Alarms.Clear(leaf.AlarmRegistry, s.cfg.alarmSubject())
	case now-s.since >= s.cfg.Lease && (s.session == nil || s.ranOut()):
		s.cfg.Alarms.Raise(leaf.Alarm{
			Code: leaf.AlarmRegistry, Subject: s.cfg.alarmSubject(), Text: "this node issues no tag in strict order, because the registry of slots cannot be used: " + err.Error(),
			Do: "do what the text says; if it names no cure, bring the database back; the node goes on by itself",
		})
	}
}

// alarmSubject is the subject of the alarm that this package raises. Each database has its own: what one of them
// answers does not end the alarm of another.
func (c Config) alarmSubject() string {
	if c.Database == "" {
		return "slots"
	}
	return "slots of " + c.Database
}

// Close ends all terms, at once, then gives the node's slots to others and ends its session, as far as ctx
// allows: what is left of that is ended by the other nodes.
func (s *Slots) Close(ctx context.Context) error {
	s.stop()
	s.endTerms()
	s.tellNews(func() {})
	if err := s.tasks.Wait(ctx); err != nil {
		return err
	}
	return s.leave(ctx)
}

// call is one call of the registry. After a renewal that hangs, another one is in time.
func call[T any](ctx context.Context, s *Slots, f func(context.Context) (T, error)) (T, error) {
	return bounded.Do(ctx, &s.guard, s.cfg.Lease/2, f)
}

// publish makes what the view says of the owners known.
func (s *Slots) publish() {
	routes := make([]Route, len(s.view.slots))
	for k, r := range s.view.slots {
		routes[k].Epoch = r.Floor
		if !r.Released && s.view.alive(r.Nonce) {
			routes[k].Address, routes[k].Secret = s.view.sessions[r.Nonce].Address, r.Nonce
		}
	}
	s.routes.Store(&routes)
	if s.session != nil {
		s.secret.Store(&s.session.Nonce)
	}
	s.tellNews(func() {})
}
