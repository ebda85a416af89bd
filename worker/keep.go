package worker

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/snowflake"
)

// tenure is one generator on one number, from a claim to its loss.
type tenure struct {
	gen  *snowflake.Generator
	from int64 // the floor of the claim: nothing below is issued

	after string // whose T from is, as Record.After says

	claim     atomic.Pointer[Record] // as this process wrote it last, or as the file had it
	confirmed atomic.Bool            // the registry knows claim; else it stems from the node's file

	bound    atomic.Int64  // T, acknowledged or durably extended; it only grows
	inner    atomic.Int64  // t, durable; only the one who writes the file sets it
	ended    chan struct{} // closed when the tenure is over
	extended chan struct{} // closed when the goroutine that writes the file has ended
}

func (t *tenure) number() int64 { return t.claim.Load().Number }

// previous is the claim for the one that follows it; nothing at or above inner was issued.
func (t *tenure) previous(inner int64) *Previous {
	own := t.claim.Load()
	return &Previous{Number: own.Number, Nonce: own.Nonce, Inner: inner, Incarnation: own.Incarnation}
}

// begin makes the bound of a new claim durable and prepares its generator.
func (h *Holder) begin(own Record, confirmed bool) (*tenure, error) {
	t := &tenure{from: own.Floor, after: own.After, ended: make(chan struct{}), extended: make(chan struct{})}
	own.After = ""
	t.claim.Store(&own)
	t.confirmed.Store(confirmed)
	t.bound.Store(own.Bound)
	inner := min(own.Bound, max(own.Floor, h.unit(h.rt.Now().Add(h.cfg.Ahead))))
	if err := h.writeFile(h.base, own, inner, own.Bound); err != nil {
		return nil, err
	}
	t.inner.Store(inner)
	cfg := snowflake.Config{
		Layout: h.cfg.Layout, Datacenter: h.cfg.Datacenter, Worker: own.Number,
		Floor: own.Floor, Bound: inner,
		Tolerance: h.cfg.Tolerance, Policy: h.cfg.Policy,
	}
	if h.cfg.Runtime != nil {
		cfg.Now, cfg.Sleep, cfg.Rand = h.rt.Now, h.sleep, h.chance
	}
	var err error
	if t.gen, err = snowflake.New(cfg); err != nil {
		return nil, fmt.Errorf("%w: %w", leaf.ErrBadRequest, err)
	}
	h.log.Info("worker ID claimed", "worker", own.Number, "registry", h.info.Name, "confirmed", confirmed,
		"from", time.UnixMilli(max(own.Floor, h.rt.Now().UnixMilli())).UTC(), "until", time.UnixMilli(own.Bound).UTC())
	return t, nil
}

// sleep is the generator's wait on our runtime.
func (h *Holder) sleep(ctx context.Context, d time.Duration) error { return h.rt.Wait(ctx, nil, d) }

// chance is the generator's source of random low bits on our runtime.
func (h *Holder) chance() uint64 { return uint64(h.rt.Jitter(1 << 20)) }

// keep holds the tenure until it is lost or the Holder is closed.
func (h *Holder) keep(t *tenure) {
	h.held = t
	lost := h.await(t)
	if lost == nil && h.publish(t) {
		h.firstAttempt(nil) // not before: who has seen Start return expects IDs
		h.rt.Go(func() { h.extend(t) })
		lost = h.renew(t)
	} else {
		close(t.extended)
	}
	if lost == nil {
		close(t.ended)
		_ = h.rt.Wait(context.Background(), t.extended, 0)
		return // closing: Close releases what is held
	}
	// First of all, nothing more is issued.
	end := t.gen.Stop()
	h.set(Refused, lost)
	h.tenure.Store(nil)
	close(t.ended)
	_ = h.rt.Wait(context.Background(), t.extended, 0)
	if errors.Is(lost, errOutOfReach) {
		h.giveUp(t, end, lost)
		return
	}
	h.forfeit(t, end, lost)
	h.withdraw(*t.claim.Load())
}

// errOutOfReach: the clock is behind what the number may be used from, and another
// number is of use at once.
var errOutOfReach = errors.New("worker: the number lies ahead of the clock")

// giveUp releases a number that lies ahead of the clock. The next claim takes another
// one, as that of a restart would; if there is none, it takes this one again.
func (h *Holder) giveUp(t *tenure, end int64, why error) {
	h.held = nil
	h.counters.losses.Add(1)
	h.mu.Lock()
	h.previous = t.previous(end)
	h.mu.Unlock()
	h.log.Warn("worker ID is given back, another one is being claimed", "worker", t.number(), "reason", why)
	if err := h.release(h.base, t, false); err != nil && !h.isClosing() {
		h.log.Warn("worker ID is not given back; it is free after T", "worker", t.number(), "error", err)
	}
}

// outOfReach returns errOutOfReach if a leased number is of no use for longer than the
// margin, because the clock is behind what was issued with it, and a claim would be
// given another one. The registry answers, and no peer objects to the clock: else the
// clock may still come back.
func (h *Holder) outOfReach(t *tenure) error {
	behind := time.UnixMilli(t.gen.Position()).Sub(h.rt.Now())
	reserved := h.cfg.Policy == snowflake.UseReserved && t.gen.Position() < t.inner.Load()
	if h.info.Kind != Leased || h.cfg.Numbers.Len() < 2 || behind <= max(h.cfg.Margin, h.cfg.Tolerance)+h.cfg.Layout.Unit || reserved || !t.confirmed.Load() || h.failures > 0 {
		return nil
	}
	objection, jump := h.settle()
	if right := objection == nil && jump == nil && h.checkedWithin(h.cfg.Renew, 0); !right {
		return nil
	}
	return fmt.Errorf("%w: %w: the clock is %v behind what was issued with worker ID %d", leaf.ErrClock, errOutOfReach, behind.Round(time.Millisecond), t.number())
}

// forfeit notes that a claim is lost. The file gives up the time up to T as well, so
// that neither this process nor the next one goes on from it without the registry.
func (h *Holder) forfeit(t *tenure, end int64, lost error) {
	h.held = nil
	h.counters.losses.Add(1)
	h.mu.Lock()
	h.previous = t.previous(end)
	h.mu.Unlock()
	if err := h.writeFile(h.base, *t.claim.Load(), end, end); err != nil {
		h.log.Warn("the loss of the worker ID is not on the disk", "error", err)
	}
	h.cfg.Alarms.Raise(leaf.Alarm{
		Code: leaf.AlarmClaim, Subject: alarmSubject,
		Text: fmt.Sprintf("worker ID %d is lost, a new one is being claimed: %v", t.number(), lost),
		Do:   "nothing, unless it repeats: then see leaf worker list for who takes it",
	})
}

// await keeps the claim while its floor lies in the future. It returns the loss, if
// the claim is lost meanwhile.
func (h *Holder) await(t *tenure) error {
	_, began := h.read()
	// A clock that stands still, or is slow, shortly before the floor must not make the
	// node write to its registry without a pause.
	least := time.Millisecond
	for !h.isClosing() {
		now := h.rt.Now()
		left := time.UnixMilli(t.from).Sub(now)
		if left <= 0 {
			break
		}
		h.waits(t, left)
		h.firstAttempt(nil)
		pause := left
		if left < least {
			pause, least = least, min(2*least, h.cfg.Renew)
		}
		h.pause(min(pause, h.cfg.Renew))
		if lost := h.renewOnce(t); lost != nil {
			return lost
		}
		// By now another number may be of use.
		if _, elapsed := h.read(); left > h.cfg.longest() && elapsed-began > h.cfg.Lease {
			if lost := h.outOfReach(t); lost != nil {
				return lost
			}
		}
	}
	if h.isClosing() {
		return nil
	}
	// A claim that was made below its floor has a T that ends there.
	if t.bound.Load() < h.unit(h.rt.Now().Add(h.cfg.Ahead)) {
		if lost := h.renewOnce(t); lost != nil {
			return lost
		}
	}
	h.extendOnce(t)
	return nil
}

// waits reports a floor in the future. A short wait is the normal end of a crash; a
// longer one than any claim causes means that some clock was or is wrong.
func (h *Holder) waits(t *tenure, left time.Duration) {
	from := time.UnixMilli(t.from).UTC().Format(time.RFC3339)
	reason := fmt.Errorf("worker ID %d may be used from %s on, in %v, because until then another node may issue with it", t.number(), from, left.Round(time.Millisecond))
	if t.after != "" {
		reason = fmt.Errorf("worker ID %d may be used from %s on, in %v, because its last owner, a process with the address %s, may issue with it until then", t.number(), from, left.Round(time.Millisecond), t.after)
	} else if (h.info.Shared || h.info.Kind == Leased) && left > h.cfg.Margin && t.claim.Load().Bound <= t.from {
		reason = fmt.Errorf("%w; so it is in a registry that is new, was wiped or lost records, and this node waits. Only before the first node of a cluster that has issued no ID starts, run leaf worker init with the settings of that node", reason)
	}
	if left > h.cfg.longest() {
		reason = fmt.Errorf("%w: %w; the clock of this node is behind, or that of the last owner was ahead", leaf.ErrClock, reason)
		h.cfg.Alarms.Raise(leaf.Alarm{
			Code: leaf.AlarmClock, Subject: clockSubject, Text: reason.Error(),
			Do: "compare this node's clock with others; if it is right, give the node another worker ID",
		})
	}
	if moved, _ := h.enter(Waiting, reason); moved {
		h.log.Warn("snowflake mode waits", "reason", reason)
	}
}

// publish lets callers issue, unless the Holder is being closed: Close stops what is
// published, under the same lock.
func (h *Holder) publish(t *tenure) bool {
	h.mu.Lock()
	open := !h.isClosing()
	if open {
		h.tenure.Store(t)
	}
	h.mu.Unlock()
	if open {
		h.set(Serving, nil)
		h.cfg.Alarms.Clear(leaf.AlarmClaim, alarmSubject)
		h.cfg.Alarms.Clear(leaf.AlarmClock, clockSubject)
	}
	return open
}

// renew renews until the claim is lost, which it returns, or the Holder is closed.
func (h *Holder) renew(t *tenure) error {
	if t.confirmed.Load() {
		h.announce(*t.claim.Load())
		h.inspect()
	}
	for {
		h.pause(h.cfg.Renew)
		if h.isClosing() {
			return nil
		}
		if lost := h.renewOnce(t); lost != nil {
			return lost
		}
		h.recheck()
		h.reinspect()
		h.warnOfEnd()
		if lost := h.outOfReach(t); lost != nil {
			return lost
		}
	}
}

// renewOnce renews T, or asks for a claim that has not been confirmed yet. It returns
// an error only if the claim is lost. T does not grow while the clock cannot be
// trusted (rule F).
func (h *Holder) renewOnce(t *tenure) (lost error) {
	bound := t.bound.Load()
	inner := t.inner.Load()
	now, err := h.trusted(t)
	h.doubts = err != nil && (h.tenure.Load() == t || h.clock.jumped() != nil) // a floor ahead is no fault of the clock
	if err == nil {
		bound = max(bound, h.unit(now.Add(h.cfg.Horizon)))
	}
	own := *t.claim.Load()
	switch {
	case t.confirmed.Load():
		// A file with less than this t is an old copy (see previous in pool.go).
		own.Floor = min(max(own.Floor, inner), own.Bound)
		ctx, cancel := h.rt.WithTimeout(h.base, h.cfg.Timeout)
		own, err = h.reg.Renew(ctx, own, bound)
		cancel()
	default:
		own, err = h.confirm(t)
	}
	switch {
	case err == nil:
		h.renewed(t, own)
	case h.isClosing():
	case errors.Is(err, leaf.ErrClock) && !errors.Is(err, ErrAhead): // a confirmation needs the time; extend tells what is wrong
	case answered(err):
		return err
	default:
		h.counters.renewFailures.Add(1)
		if h.failures++; h.failures > 1 {
			h.registryAlarm(err, t.bound.Load())
		}
	}
	return nil
}

// renewed takes over what the registry acknowledged.
func (h *Holder) renewed(t *tenure, own Record) {
	if !t.confirmed.Swap(true) {
		h.log.Info("worker ID confirmed by the registry", "worker", own.Number)
	}
	t.claim.Store(&own)
	raise(&t.bound, own.Bound)
	h.failures = 0
	h.cfg.Alarms.Clear(leaf.AlarmRegistry, h.info.Name)
	h.announce(own)
}

// confirm claims the number of a tenure that began from the file. The file's nonce is
// the proof that it was ours. A number that may be used only from later on than we have
// issued had another owner meanwhile: our generator must not go on with it, even if it
// is the same one.
func (h *Holder) confirm(t *tenure) (Record, error) {
	if h.asked == "" {
		h.asked = h.cfg.Nonce()
	}
	old := t.claim.Load()
	inner := t.inner.Load()
	own, err := h.claim(h.asked, t.previous(inner))
	switch {
	case err != nil:
		return own, err
	case own.Number != old.Number:
		return own, fmt.Errorf("%w: the registry gave %d instead of %d to this node", ErrLost, own.Number, old.Number)
	case own.Floor > inner:
		return own, fmt.Errorf("%w: somebody else had worker ID %d until %s", ErrLost, own.Number, time.UnixMilli(own.Floor).UTC().Format(time.RFC3339Nano))
	}
	h.asked = ""
	return own, nil
}

// raise sets a to v if that is more.
func raise(a *atomic.Int64, v int64) {
	for old := a.Load(); old < v && !a.CompareAndSwap(old, v); old = a.Load() {
	}
}

func (h *Holder) announce(own Record) {
	ctx, cancel := h.rt.WithTimeout(h.base, h.cfg.Timeout)
	defer cancel()
	if err := h.reg.Announce(ctx, h.self(own)); err != nil && !h.isClosing() {
		h.log.Warn("this node is not announced to its peers; their clock checks miss it", "error", err)
	}
}

// withdraw ends the announcement of a claim that is over.
func (h *Holder) withdraw(own Record) {
	ctx, cancel := h.rt.WithTimeout(h.base, h.cfg.Timeout)
	defer cancel()
	if err := h.reg.Withdraw(ctx, h.self(own)); err != nil && !h.isClosing() {
		h.log.Debug("the announcement to the peers is not withdrawn; it ends by itself", "error", err)
	}
}

// self is this node as its peers see it.
func (h *Holder) self(own Record) Peer {
	p := Peer{Address: h.cfg.Address, Clock: h.cfg.Clock.Self, Nonce: own.Nonce, Number: own.Number}
	if h.doubts && p.Clock != "" {
		p.Clock = Doubtful + p.Clock
	}
	return p
}

// registryAlarm says that the registry cannot be used, and why, and until when that is
// harmless; until is 0 if nothing is issued.
func (h *Holder) registryAlarm(err error, until int64) {
	text := fmt.Sprintf("registry %s cannot be used: %v", h.info.Name, err)
	if until > 0 {
		text += fmt.Sprintf("; IDs are issued until %s", time.UnixMilli(until).UTC().Format(time.RFC3339))
	}
	h.cfg.Alarms.Raise(leaf.Alarm{Code: leaf.AlarmRegistry, Subject: h.info.Name, Text: text, Do: "do what the text says, or bring the registry back; the node goes on by itself"})
}

// warnOfEnd raises an alarm in the last year of the layout.
func (h *Holder) warnOfEnd() {
	const year = 365 * 24 * time.Hour
	end := h.cfg.Layout.End()
	if left := end.Sub(h.rt.Now()); left < year {
		h.cfg.Alarms.Raise(leaf.Alarm{
			Code: leaf.AlarmExhausted, Subject: layoutSubject,
			Text: fmt.Sprintf("the layout has no more IDs from %s on, in %d days", end.Format(time.DateOnly), int(left.Hours()/24)),
			Do:   "plan a new epoch or layout, with a new registry and new tables: its IDs can be equal to those of this one",
		})
		return
	}
	h.cfg.Alarms.Clear(leaf.AlarmExhausted, layoutSubject) // a clock that was wrong
}

// Subjects of our alarms.
const (
	alarmSubject  = "worker"
	clockSubject  = "self"
	layoutSubject = "layout"
)
