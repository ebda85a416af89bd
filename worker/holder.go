package worker

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/snowflake"
)

var _ leaf.Issuer = (*Holder)(nil)

// Holder holds a worker ID and issues snowflake IDs with it. It claims the number,
// renews it, notices its loss and claims again by itself. Make it with New, call
// Start, and Close it. All methods are safe for concurrent use.
type Holder struct {
	cfg       Config
	layouts   []snowflake.Layout // that of cfg, then the further ones
	rt        leaf.Runtime
	log       *slog.Logger
	reg       guarded
	info      Info
	disk      Disk
	leave     func() // ends the use of its file
	namespace Namespace

	// session is what IDs are issued with, nil while nothing may be issued. It is
	// published after its bound is durable and withdrawn after its generator stopped.
	session atomic.Pointer[session]

	clock clockWatch
	peers peerCheck
	made  time.Time // by New

	// The loop's own, and Close's once the loop has ended.
	held       *session      // claimed and neither lost nor released, also while its first write to the disk lasts or after that failed
	failures   int           // renewals without an answer in a row
	damaged    bool          // the registry has records that cannot be read
	inspected  time.Duration // elapsed time of the last look for those
	mute       error         // why the last announcement failed, nil if it did not
	doubts     bool          // the clock cannot be trusted, and the peers must not believe it
	unfinished bool          // the last claim ended at its deadline
	asked      []string      // nonces of claims without an answer, which the registry may have recorded; the latest last

	// Of the goroutine that writes the file: the one that extends t, or the one that has ended it.
	named     string        // the nonce that name has last put into the file, where the disk confirmed it
	unwritten *written      // what the last write of the file failed to make durable, nil if none
	writing   chan struct{} // closed when the last write has ended; nil: there was none

	base   context.Context //nolint:containedctx // parent of all calls, cancelled when Close begins
	cancel context.CancelFunc
	first  chan struct{} // closed once the first attempt to claim has ended
	done   chan struct{} // closed once the engine's loop has ended
	closed chan struct{} // closed once Close has ended
	closer atomic.Bool
	began  atomic.Bool

	counters counters

	mu       sync.Mutex
	state    State
	reason   error     // why nothing is issued, or what is wrong though IDs are issued; nil if all is well
	firstErr error     // the result of the first attempt, set before first is closed
	previous *Previous // our last claim: of the file, later of this process
	wake     chan struct{}
}

// State says what a Holder is doing.
type State string

// The states of a Holder. Only Serving issues IDs. Stalled is what Status makes of it.
const (
	Starting State = "starting" // no answer from the registry yet
	Refused  State = "refused"  // no number could be claimed; it is tried again
	Standby  State = "standby"  // waits for the holder of the number to go away
	Waiting  State = "waiting"  // has a number, whose floor lies in the future
	Serving  State = "serving"
	Stalled  State = "stalled" // has a number, and the clock, the registry or the disk keeps it from issuing
	Closed   State = "closed"
)

// New prepares a Holder and touches neither registry nor disk. Only a fixed number has
// a file on disk: a restart with a leased one takes another number. A nil disk is for
// programs without a data directory: every restart of a fixed number then starts at T.
// A Static has no T, and needs a disk. Errors: leaf.ErrBadRequest; leaf.ErrConflict while
// another Holder uses the file and is not closed.
func New(reg Registry, disk Disk, cfg Config) (*Holder, error) {
	info := reg.Info()
	cfg = cfg.WithDefaults()
	if err := cfg.Validate(info); err != nil {
		return nil, err
	}
	layouts, err := cfg.layouts()
	if err != nil {
		return nil, err
	}
	cfg.Datacenter = new(cfg.datacenter()) // the caller may change its own
	if disk == nil && info.Kind == Fixed && !info.Shared {
		return nil, leaf.BadField("disk", nil, "must be given with a static worker ID, such as a datadir.Dir: nothing else remembers until when IDs were issued with it, and a process that starts again could repeat them")
	}
	if disk == nil || info.Kind == Leased {
		disk = noDisk{}
	}
	h := &Holder{
		cfg: cfg, layouts: layouts, rt: cfg.Runtime, log: cfg.Logger, info: info, disk: disk,
		namespace: NewNamespace(cfg.Namespace, cfg.Layout, cfg.datacenter()),
		first:     make(chan struct{}),
		done:      make(chan struct{}),
		closed:    make(chan struct{}),
		wake:      make(chan struct{}),
		state:     Starting,
		reason:    errors.New("no worker ID is claimed yet"),
	}
	if h.rt == nil {
		h.rt = leaf.SystemRuntime()
	}
	h.reg = guarded{reg, &guard{rt: h.rt, log: h.log, hung: map[string]hungCall{}}}
	if err := h.onDisk("Disk.Occupy", func() (err error) { h.leave, err = disk.Occupy(fileName); return err }); err != nil {
		return nil, fmt.Errorf("worker: %w", err)
	}
	h.clock.limit, h.clock.reach = cfg.Jump, cfg.Horizon
	h.clock.first, h.clock.end = common(layouts)
	h.made = h.rt.Now()
	h.base, h.cancel = context.WithCancel(context.Background())
	return h, nil
}

// Start begins to claim and returns after the first attempt. Its errors are those
// that no waiting can heal: ErrForeign, ErrSchema, leaf.ErrBadRequest, and
// leaf.ErrConflict for a damaged file of a static number, which has no other memory.
// After any other failure the claim is tried again in the background, and until then
// calls get leaf.ErrNotReady or leaf.ErrClock. Call it once; after an error call Close.
func (h *Holder) Start(ctx context.Context) error {
	if h.began.Swap(true) {
		return fmt.Errorf("%w: the worker was started before", leaf.ErrConflict)
	}
	h.rt.Go(h.run)
	if err := h.rt.Wait(ctx, h.first, 0); err != nil {
		return fmt.Errorf("first claim of a worker ID: %w", err)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.firstErr
}

// Next implements leaf.Issuer. The key chooses a layout of Config.Layouts; all other keys share one sequence.
func (h *Holder) Next(ctx context.Context, key string) (int64, error) {
	s := h.session.Load()
	if s == nil {
		return 0, h.refusal()
	}
	gen, err := s.gen.of(key)
	if err != nil {
		return 0, err
	}
	id, err := gen.Next(ctx)
	if err != nil {
		return 0, h.explain(err)
	}
	return id, nil
}

// NextN implements leaf.Issuer. The ranges of a batch that needs several units of
// time lie apart.
func (h *Holder) NextN(ctx context.Context, key string, n int) ([]leaf.Range, error) {
	if n < 1 || n > leaf.MaxBatch {
		return nil, leaf.BadField("count", n, fmt.Sprintf("must be 1 to %d", leaf.MaxBatch))
	}
	s := h.session.Load()
	if s == nil {
		return nil, h.refusal()
	}
	gen, err := s.gen.of(key)
	if err != nil {
		return nil, err
	}
	runs, err := gen.NextN(ctx, n)
	if err != nil {
		return nil, h.explain(err)
	}
	ranges := make([]leaf.Range, 0, len(runs))
	for _, r := range runs {
		ranges = leaf.AppendRange(ranges, leaf.Range{Lo: r.Lo, Hi: r.Hi})
	}
	return ranges, nil
}

// refusal is the answer while there is no generator.
func (h *Holder) refusal() error {
	h.mu.Lock()
	state, reason := h.state, h.reason
	h.mu.Unlock()
	switch {
	case reason == nil:
		return fmt.Errorf("%w: snowflake mode has changed its state just now, retry", leaf.ErrNotReady)
	case state == Refused || state == Standby:
		return &refusedError{state, reason}
	case errors.Is(reason, leaf.ErrClock):
		return fmt.Errorf("%w: snowflake mode is %s: %w", leaf.ErrClock, state, reason)
	}
	return fmt.Errorf("%w: snowflake mode is %s: %w", leaf.ErrNotReady, state, reason)
}

// refusedError is the answer while no worker ID can be claimed.
type refusedError struct {
	state  State
	reason error
}

func (e *refusedError) Error() string {
	class := leaf.ErrNotReady
	if errors.Is(e.reason, leaf.ErrClock) {
		class = leaf.ErrClock
	}
	if !answered(e.reason) && !errors.Is(e.reason, errDisk) { // nothing has refused the node
		return fmt.Sprintf("%v: this node has no worker ID yet, because the registry does not answer, or not in time; its log says why", class)
	}
	return fmt.Sprintf("%v: snowflake mode is %s: this node has no worker ID; its log says why", class, e.state)
}

func (e *refusedError) Unwrap() []error { return []error{leaf.ErrNotReady, e.reason} }

// Cause returns why no worker ID can be claimed, if err says so and is an error of Next or
// NextN, and nil otherwise. The text of err leaves it out, because err goes to clients, and the
// cause may name hosts and users of the registry, or other nodes. It is for logs and administrators.
func Cause(err error) error {
	if e, ok := errors.AsType[*refusedError](err); ok {
		return e.reason
	}
	return nil
}

// explain maps the generator's errors to the table of package leaf.
func (h *Holder) explain(err error) error {
	switch {
	case errors.Is(err, snowflake.ErrClock):
		h.counters.clockErrors.Add(1)
		return fmt.Errorf("%w: %w", leaf.ErrClock, err)
	case errors.Is(err, snowflake.ErrSaturated): // the caller's deadline came before the next unit of time
		return fmt.Errorf("%w: %w", leaf.ErrExhausted, err)
	case errors.Is(err, snowflake.ErrBound), errors.Is(err, snowflake.ErrOverflow):
		// A clock that jumped ahead looks like either.
		if jump := h.clock.look(h.read()); jump != nil {
			h.counters.clockErrors.Add(1)
			return jump
		}
		if errors.Is(err, snowflake.ErrOverflow) {
			return fmt.Errorf("%w: %w", leaf.ErrOverflow, err)
		}
	}
	return fmt.Errorf("%w: %w", leaf.ErrNotReady, err)
}

// run claims and keeps until Close.
func (h *Holder) run() {
	defer close(h.done)
	defer h.firstAttempt(nil) // Close may come before anything else
	for !h.isClosing() {
		if s := h.acquire(); s != nil {
			h.keep(s)
		}
	}
}

func (h *Holder) isClosing() bool { return h.base.Err() != nil }

// firstAttempt lets Start return.
func (h *Holder) firstAttempt(err error) {
	select {
	case <-h.first:
		return
	default:
	}
	if !permanent(err) {
		err = nil
	}
	h.mu.Lock()
	h.firstErr = err
	h.mu.Unlock()
	close(h.first)
}

// permanent reports whether err refuses the start.
func permanent(err error) bool {
	return errors.Is(err, ErrForeign) || errors.Is(err, ErrSchema) || errors.Is(err, leaf.ErrBadRequest) || errors.Is(err, leaf.ErrConflict)
}

// set notes what the Holder is doing and why it does not issue, and logs what is new.
func (h *Holder) set(s State, reason error) {
	if _, news := h.enter(s, reason); !news {
		return
	}
	attrs := []any{"state", s}
	if reason != nil {
		attrs = append(attrs, "reason", reason)
	}
	h.log.Info("snowflake mode", attrs...)
}

// enter notes state and reason. It reports whether the state is another one than
// before, and whether that or the reason is news. Closed is the last state.
func (h *Holder) enter(s State, reason error) (moved, news bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.state == Closed {
		return false, false
	}
	moved = h.state != s
	news = moved || reason != nil && (h.reason == nil || h.reason.Error() != reason.Error())
	h.state, h.reason = s, reason
	return moved, news
}

// pause waits for d, for Close, or for news.
func (h *Holder) pause(d time.Duration) {
	h.mu.Lock()
	wake := h.wake
	h.mu.Unlock()
	_ = h.rt.Wait(h.base, wake, d) // the callers look at base themselves
}

// nudge ends the present pauses.
func (h *Holder) nudge() {
	h.mu.Lock()
	defer h.mu.Unlock()
	close(h.wake)
	h.wake = make(chan struct{})
}

// Close stops the generator for good, then gives the number back, so that the next
// owner need not wait for T, and ends the connections to the registry. What cannot be
// released until ctx ends stays claimed until T; no ID can repeat by that. A second
// Close waits for the first.
//
// If Close returns an error after ctx has ended, a write to the Disk may still be under
// way: the data directory must then stay locked until the process ends.
func (h *Holder) Close(ctx context.Context) error {
	if h.closer.Swap(true) {
		return h.rt.Wait(ctx, h.closed, 0)
	}
	defer close(h.closed)
	h.mu.Lock()
	h.cancel() // ends the loop's calls; under the lock, so that nothing is published from here on
	s := h.session.Swap(nil)
	h.state, h.reason = Closed, errors.New("the node is stopping")
	h.mu.Unlock()
	if s != nil {
		s.gen.Stop() // whatever else happens, nothing is issued any more
	}
	return errors.Join(h.finish(ctx), h.reg.end(ctx))
}

// finish releases the number, if there is one, and leaves the file once nothing writes it.
func (h *Holder) finish(ctx context.Context) (err error) {
	if !h.began.Load() {
		h.leave()
		return nil
	}
	if err := h.rt.Wait(ctx, h.done, 0); err != nil {
		return fmt.Errorf("worker: the claim did not end in time, its number is free after T: %w", err)
	}
	if h.held != nil {
		err = h.release(ctx, h.held, h.cfg.KeepOnStop)
	}
	if late := h.lastWrite(ctx); late != nil {
		return errors.Join(err, late)
	}
	h.leave()
	return err
}
