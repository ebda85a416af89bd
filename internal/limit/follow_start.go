package limit

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/leaf-idgen/leaf"
)

// start keeps requests waiting, in Follower.Access, until the rules are known for the first
// time. Without it, a tag that an operator has switched off would be served for a moment after
// each start.
//
//   - A request for a tag waits until the tag's source was read. The IDs come from the same
//     source, so nothing is lost while it is down. If the source has issued IDs for Timeout and
//     its rules still cannot be read, for lack of a right for example, the tag is served
//     without rules.
//   - Every request, in both modes, waits until the first source of the configuration was
//     read, because that one holds the rules of clients. After Timeout it is served all the
//     same: other sources, and a mode that needs none, must not depend on the first one.
type start struct {
	over    atomic.Bool   // no request waits for any source any more
	clients chan struct{} // closed when no request waits for the rules of clients any more
	waiting atomic.Int64  // requests
}

// Access returns the Gate with the requests held back whose rules are not known yet: for
// up to MaxWait, then they get leaf.ErrNotReady. Those that show a wrong token are refused
// at once. After the first reading nothing lies between a server and the Gate.
func (f *Follower) Access() leaf.Access { return access{f} }

// Asked waits until every source was asked once, whatever the outcome, or ctx ends.
func (f *Follower) Asked(ctx context.Context) {
	for _, s := range f.sources {
		_ = f.c.Runtime.Wait(ctx, s.asked, 0)
	}
}

// Held reports, for each mode, whether all requests are held back now.
func (f *Follower) Held() (segment, snowflake bool) {
	if f.start.over.Load() {
		return false, false
	}
	snowflake = !isClosed(f.start.clients)
	segment = true
	for _, s := range f.sources {
		segment = segment && !isClosed(s.known)
	}
	return segment || snowflake, snowflake
}

// awaitClients ends the wait for the rules of clients.
func (f *Follower) awaitClients(ctx context.Context) {
	first := f.sources[0]
	if f.c.Runtime.Wait(ctx, first.known, f.c.Timeout) != nil {
		return // the node stops
	}
	if !isClosed(first.known) {
		f.c.Logger.Warn("limits of clients cannot be read yet; IDs are issued without them", "store", first.Name)
	}
	close(f.start.clients)
}

// noteStart is note until the rules of a source are known.
func (f *Follower) noteStart(s *followed, err error) {
	if isClosed(s.known) {
		return
	}
	if !isClosed(s.asked) {
		close(s.asked)
	}
	now := f.c.Runtime.Now()
	switch {
	case err == nil:
	case s.Issues == nil || !s.Issues():
		s.issuing = time.Time{}
		return
	case s.issuing.IsZero():
		s.issuing = now
		return
	case now.Sub(s.issuing) < f.c.Timeout:
		return
	default:
		f.c.Logger.Warn("limits cannot be read although the store issues IDs; its tags are served without them", "store", s.Name, "error", err)
	}
	close(s.known)
	over := true
	for _, s := range f.sources {
		over = over && isClosed(s.known)
	}
	if over { // of two sources at once both may say so
		f.start.over.Store(true)
	}
}

// access is Follower.Access.
type access struct{ follower *Follower }

// Guarded implements leaf.Access.
func (a access) Guarded() bool { return a.follower.gate.Guarded() }

// Open implements leaf.Access.
func (a access) Open(c leaf.Credentials) (*leaf.Issuers, error) {
	f := a.follower
	issuers, err := f.gate.Open(c)
	if err != nil || f.start.over.Load() {
		return issuers, err
	}
	all := *issuers
	if _, off := f.gate.inner[segment].(leaf.Disabled); !off { // else it says so at once
		all.Segment = &held{f, issuers.Segment, f.sourceOf}
		all.Sequence = &heldSequences{held{f, nil, f.sourceOf}, issuers.Sequence}
	}
	if _, off := f.gate.inner[snowflake].(leaf.Disabled); !off {
		all.Snowflake = &held{f, issuers.Snowflake, nil}
	}
	return &all, nil
}

// sourceOf returns the source of a tag, nil if none holds it.
func (f *Follower) sourceOf(tag string) *followed {
	for _, s := range f.sources {
		if s.holds(tag) {
			return s
		}
	}
	return nil
}

// held is one mode of a client whose connection began before all rules were known.
type held struct {
	follower *Follower
	inner    leaf.Issuer
	sourceOf func(tag string) *followed // nil: it has no tags
}

// Next implements leaf.Issuer.
func (h *held) Next(ctx context.Context, tag string) (int64, error) {
	if err := h.wait(ctx, tag); err != nil {
		return 0, err
	}
	return h.inner.Next(ctx, tag)
}

// NextN implements leaf.Issuer.
func (h *held) NextN(ctx context.Context, tag string, n int) ([]leaf.Range, error) {
	if n < 1 || n > leaf.MaxBatch {
		return h.inner.NextN(ctx, tag, n) // which says what is wrong
	}
	if err := h.wait(ctx, tag); err != nil {
		return nil, err
	}
	return h.inner.NextN(ctx, tag, n)
}

// retryHeld is when one request too many may come again: the next reading is over then.
const retryHeld = firstInterval

// wait returns when the rules for tag are known. The engine then bounds its own wait.
func (h *held) wait(ctx context.Context, tag string) error {
	f := h.follower
	known := f.start.clients
	var source *followed
	if h.sourceOf != nil && !f.start.over.Load() {
		source = h.sourceOf(tag)
	}
	if f.start.over.Load() || isClosed(known) && (source == nil || isClosed(source.known)) {
		return nil
	}
	defer f.start.waiting.Add(-1)
	if f.start.waiting.Add(1) > int64(f.c.MaxWaiting) {
		return leaf.Later(leaf.ErrNotReady, "too many requests wait until the limits are known", retryHeld)
	}
	leaf.Waits(ctx)
	ctx, cancel := f.c.Runtime.WithTimeout(ctx, f.c.MaxWait)
	defer cancel()
	err := f.c.Runtime.Wait(ctx, known, 0)
	if err == nil && source != nil {
		err = f.c.Runtime.Wait(ctx, source.known, 0)
	}
	if err != nil {
		return fmt.Errorf("%w: the limits of tags and clients could not be read from the database yet", leaf.ErrNotReady)
	}
	return nil
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}
