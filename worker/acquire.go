package worker

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/leaf-idgen/leaf"
)

// acquire tries to get a number until it has one, and returns nil only if the
// Holder is being closed or the first attempt failed for good.
func (h *Holder) acquire() *session {
	// What the registry gave to a confirmation is ours too, under the nonce of that.
	nonce := h.cfg.Nonce()
	if last := len(h.asked) - 1; last >= 0 {
		nonce = h.asked[last]
	}
	h.asked = nil
	for failures := 0; !h.isClosing(); failures++ {
		own, confirmed, err := h.attempt(nonce)
		if err == nil {
			s, beginErr := h.begin(own, confirmed)
			if beginErr == nil {
				return s
			}
			err = beginErr
		}
		if h.isClosing() {
			break // Close releases what is still held: its first write to the disk failed, or its release
		}
		if answered(err) && !unusable(err) && !errors.Is(err, leaf.ErrClock) {
			h.held = nil // by what the registry says now, the number that was held is not ours
		}
		h.refused(err)
		h.firstAttempt(err)
		if !errors.Is(err, errDisk) {
			_ = h.rewrite(h.base) // the alarm tells
		}
		h.pause(h.backoff(err, failures))
	}
	h.firstAttempt(nil)
	return nil
}

// attempt makes one claim. If the registry does not answer, or does not say whose clocks to compare, a
// fixed number may come from the node's own file instead; it is then not confirmed. A leased number has no file.
func (h *Holder) attempt(nonce string) (own Record, confirmed bool, err error) {
	f, fileErr := h.readFile()
	if fileErr != nil && !h.info.Shared {
		return Record{}, false, h.withoutMemory(fileErr)
	}
	if fileErr != nil {
		h.log.Warn("worker.json of this node cannot be used; the worker ID may be used from its T in the registry on", "reason", fileErr)
	}
	unread, err := h.compareClocks()
	if err != nil {
		return Record{}, false, err
	}
	if err := h.name(f, nonce); err != nil {
		return Record{}, false, err
	}
	if unread == nil {
		own, err = h.claim(nonce, h.last(f), f.previous())
	} else { // the registry may answer a claim a moment later, and no peer would have looked at the clock
		err = fmt.Errorf("claim a worker ID: list the peers: %w", unread)
	}
	switch {
	case err == nil:
		h.counters.claims.Add(1)
		return own, true, nil
	case answered(err):
		return Record{}, false, err
	}
	if own, ok := h.fromFile(f); ok {
		h.asked = f.Asked
		h.registryAlarm(err, own.Bound)
		return own, false, nil
	}
	if fileErr != nil {
		err = fmt.Errorf("%w; %w", err, fileErr)
	}
	return Record{}, false, err
}

// withoutMemory is the error of a static number whose file cannot be used. What it says
// must repeat no ID (rule S): without the file nothing tells one layout from another.
func (h *Holder) withoutMemory(fileErr error) error {
	if errors.Is(fileErr, errLayout) {
		return fmt.Errorf("%w: %w; IDs of two layouts or epochs can be equal: set the layout back and keep the file, or give the IDs of the new one tables of their own and remove the file", leaf.ErrConflict, fileErr)
	}
	return fmt.Errorf("%w: %w; a static worker ID has no other memory. If no process uses it, and the clock of the node was never ahead of the present time, remove the file; the next start then waits %v", leaf.ErrConflict, fileErr, h.cfg.quiet(h.info))
}

// answered reports whether the registry itself said no.
func answered(err error) bool {
	return permanent(err) || errors.Is(err, ErrTaken) || errors.Is(err, ErrDamaged) || errors.Is(err, ErrFull) || errors.Is(err, ErrLost) || errors.Is(err, leaf.ErrClock)
}

// claim calls the registry for a number. last is our last claim there; filed is that of the
// file, perhaps at another registry. The clock is looked at
// once more, so that no jump since then gets into T or makes others look expired. A claim is some thirty requests of a driver,
// one after the other: after one that has ended at its deadline, the next one has longer, but no longer than quiet counts.
func (h *Holder) claim(nonce string, last, filed *Previous) (Record, error) {
	within := h.cfg.Timeout
	if h.unfinished {
		within = max(within, min(4*within, h.cfg.Lease))
	}
	ctx, cancel := h.rt.WithTimeout(h.base, within)
	defer cancel()
	now, elapsed := h.read()
	if err := h.clock.look(now, elapsed); err != nil {
		return Record{}, err
	}
	quietAfter := func(passed time.Duration) int64 { return h.unit(now.Add(passed + h.cfg.quiet(h.info))) }
	quiet := quietAfter(0)
	req := Request{
		Namespace: h.namespace,
		Address:   h.cfg.Address,
		Nonce:     nonce,
		Numbers:   h.cfg.Numbers,
		Now:       now.UnixMilli(),
		Bound:     h.unit(now.Add(h.cfg.Horizon)),
		Latest:    h.unit(now.Add(2 * h.cfg.longest())), // twice: other nodes may have other clocks, and a longer horizon
		End:       h.clock.end.UnixMilli(),
		Margin:    h.cfg.Margin.Milliseconds(),
		Quiet:     quiet,
		Fresh:     h.cfg.Fresh && h.counters.claims.Load() == 0,
		Previous:  last,
		QuietLater: func() int64 {
			_, since := h.read()
			return quietAfter(since - elapsed)
		},
	}
	if lost := h.last(nil); lost != nil && lost == last && lost.Quiet == 0 {
		lost.Quiet = quiet // once, by a clock that is trusted: the moment must not move with each attempt
	}
	own, err := h.reg.Claim(ctx, req)
	h.unfinished = err != nil && !answered(err) && ctx.Err() != nil
	if err == nil || answered(err) && !unusable(err) {
		h.cfg.Alarms.Clear(leaf.AlarmRegistry, h.info.Name)
	}
	if err != nil {
		return Record{}, fmt.Errorf("claim a worker ID: %w", err)
	}
	if !inRange(h.cfg.Numbers, own.Number) || own.Nonce != nonce || own.Floor > own.Bound {
		return Record{}, fmt.Errorf("%w: it answered %+v to a claim of %d-%d with nonce %q", ErrForeign, own, h.cfg.Numbers.Lo, h.cfg.Numbers.Hi-1, nonce)
	}
	// Whatever the registry remembers: this directory's last owner of the number has
	// issued up to t.
	for _, p := range []*Previous{last, filed} {
		if p != nil && p.Number == own.Number {
			own.Floor = max(own.Floor, p.Inner)
			own.Bound = max(own.Bound, own.Floor)
		}
	}
	return own, nil
}

// last is our last claim: of this process, else of the file.
func (h *Holder) last(f *file) *Previous {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.previous == nil && f != nil && f.of(h.info) {
		return f.previous()
	}
	return h.previous
}

// fromFile is the claim of a fixed number whose registry does not answer: below the
// T of the file no other node may issue (rule E). The file's nonce goes to the registry
// once it answers, as proof that the number was ours, never as our own.
func (h *Holder) fromFile(f *file) (Record, bool) {
	lost := h.last(nil) != nil // by this process: going on would ignore what the registry said
	if f == nil || lost || !f.of(h.info) || f.Address != h.cfg.Address || !inRange(h.cfg.Numbers, f.Number) {
		return Record{}, false
	}
	if f.Inner >= f.Bound || h.rt.Now().UnixMilli() >= f.Bound {
		return Record{}, false
	}
	return Record{Number: f.Number, Address: f.Address, Nonce: f.Nonce, Floor: f.Inner, Bound: f.Bound, Incarnation: f.Incarnation}, true
}

// refused notes a failed attempt and raises its alarm.
func (h *Holder) refused(err error) {
	h.counters.refusals.Add(1)
	returns := h.info.Kind == Leased && !errors.Is(err, errNoneReturns) // a fixed number stays with its owner
	if h.cfg.Standby && (errors.Is(err, ErrTaken) || errors.Is(err, ErrFull) && returns) {
		h.set(Standby, err)
		h.cfg.Alarms.Clear(leaf.AlarmClaim, alarmSubject)
		return
	}
	h.set(Refused, err)
	switch {
	case errors.Is(err, leaf.ErrClock) && !errors.Is(err, ErrAhead), errors.Is(err, errDisk): // they have their own alarms
	case answered(err):
		h.cfg.Alarms.Raise(leaf.Alarm{
			Code: leaf.AlarmClaim, Subject: alarmSubject, Text: err.Error(),
			Do: "do what the text says; if it names no cure, see leaf worker list. While the node runs it tries again by itself",
		})
	default:
		h.registryAlarm(err, 0)
	}
}

// backoff is the pause after a failed attempt.
func (h *Holder) backoff(err error, failures int) time.Duration {
	if answered(err) {
		return h.rt.Jitter(h.cfg.Renew)
	}
	const first, longest = 10 * time.Millisecond, 250 * time.Millisecond
	return h.rt.Jitter(min(first<<min(failures, 5), longest))
}

// unit rounds a moment up to the layout (rule F).
func (h *Holder) unit(t time.Time) int64 {
	return h.cfg.Layout.Millis(h.cfg.Layout.Ceil(t.UnixMilli()))
}

// release ends a session whose generator has stopped. With keep a confirmed claim stays.
//
// The file comes before the registry: once the registry's T is lower, another node may
// issue from there, so this directory must not believe any longer that the time up to T is
// its own. But a file that has given up that time makes the next start wait for the
// registry, so a fixed number first asks whether the registry answers. If it does not, all
// stays as it would after a kill.
func (h *Holder) release(ctx context.Context, s *session, keep bool) error {
	end := s.gen.Stop()
	own := *s.claim.Load()
	withdraw := func() error {
		ctx, cancel := h.rt.WithTimeout(ctx, h.cfg.Timeout)
		defer cancel()
		return h.reg.Withdraw(ctx, h.self(own))
	}
	if keep || !s.confirmed.Load() {
		// The file stays as it is, because the registry has recorded its t, or may have done so
		// with a confirmation; unless the stop came in the middle of a write.
		return errors.Join(h.rewrite(ctx), withdraw())
	}
	if settled, err := h.settleEnd(ctx, own, end); err == nil {
		own = settled
	} else if !answered(err) {
		return errors.Join(fmt.Errorf("worker ID %d is not released, because the registry does not answer: %w", own.Number, err), withdraw())
	}
	inner := max(end, own.Floor) // with less the registry would take the file for an old copy
	if err := h.writeFile(ctx, own, nil, inner, inner); err != nil {
		return errors.Join(fmt.Errorf("the worker ID is not released: %w", err), withdraw())
	}
	ask, cancel := h.rt.WithTimeout(ctx, h.cfg.Timeout)
	defer cancel()
	if err := h.reg.Release(ask, own, end); err != nil {
		return errors.Join(fmt.Errorf("release worker ID %d: %w", own.Number, err), withdraw())
	}
	issued := "nothing"
	if floor := h.cfg.Layout.Millis(h.cfg.Layout.Ceil(s.from)); end > floor {
		issued = "below " + time.UnixMilli(end).UTC().Format(time.RFC3339Nano)
	}
	h.log.Info("worker ID released", "worker", own.Number, "issued", issued)
	return withdraw()
}

// settleEnd records at the registry that a fixed number has issued nothing from end on. T
// stays, unless it is lower. The registry has recorded a later t with each renewal, so without this record it
// would take a file that says end for an old copy. It returns the record as it is then.
func (h *Holder) settleEnd(ctx context.Context, own Record, end int64) (Record, error) {
	if h.info.Kind != Fixed {
		return own, nil
	}
	ctx, cancel := h.rt.WithTimeout(ctx, h.cfg.Timeout)
	defer cancel()
	own.Floor = end
	return h.reg.Renew(ctx, own, max(own.Bound, end)) // a registry that was restored may have a lower T than the file
}
