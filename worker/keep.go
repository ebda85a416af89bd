package worker

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/snowflake"
)

// session is a claim session: the generators of one number, from a claim to its loss.
type session struct {
	gen  generators
	from int64 // the floor of the claim: nothing below is issued

	after string   // whose T from is, as Record.After says
	asked []string // nonces under which the registry may have recorded the claim, the latest last; see file.Asked

	claim     atomic.Pointer[Record] // as this process wrote it last, or as the file had it
	confirmed atomic.Bool            // the registry knows claim; else it stems from the node's file

	bound    atomic.Int64  // T, acknowledged or durably extended; it only grows
	inner    atomic.Int64  // t, durable; only the goroutine that writes the file sets it
	ended    chan struct{} // closed when the session is over
	extended chan struct{} // closed when the goroutine that writes the file has ended
}

func (s *session) number() int64 { return s.claim.Load().Number }

// previous is the claim for the one that follows it; nothing at or above inner was issued.
func (s *session) previous(inner int64) *Previous {
	own := s.claim.Load()
	return &Previous{Number: own.Number, Nonce: own.Nonce, Asked: s.asked, Inner: inner, Bound: s.bound.Load(), Incarnation: own.Incarnation}
}

// proof returns the claim and the nonces for the file. The order matters: a confirmation stores
// the claim, whose nonce is the last of them, before it sets confirmed.
func (s *session) proof() (own Record, asked []string) {
	if !s.confirmed.Load() {
		asked = s.asked
	}
	return *s.claim.Load(), asked
}

// begin makes the bound of a new claim durable and prepares its generator.
func (h *Holder) begin(own Record, confirmed bool) (*session, error) {
	s := &session{after: own.After, ended: make(chan struct{}), extended: make(chan struct{})}
	own.After = ""
	if !confirmed {
		s.asked = h.asked
	}
	s.claim.Store(&own)
	s.confirmed.Store(confirmed)
	s.bound.Store(own.Bound)
	inner := min(own.Bound, max(own.Floor, h.unit(h.rt.Now().Add(h.cfg.Ahead))))
	s.inner.Store(inner)
	cfg := snowflake.Config{
		Datacenter: h.cfg.datacenter(), Worker: own.Number,
		Floor: own.Floor, Bound: inner,
		Tolerance: h.cfg.Tolerance, Policy: h.cfg.Policy, Admit: leaf.Admit,
	}
	if h.cfg.Runtime != nil {
		cfg.Now, cfg.Sleep, cfg.Rand = h.rt.Now, h.sleep, h.chance
	}
	var err error
	switch s.gen, err = newGenerators(cfg, h.layouts, h.cfg.Layouts); {
	case errors.Is(err, snowflake.ErrOverflow): // of this number only: the start is not refused
		return nil, fmt.Errorf("%w: worker ID %d can never be used, because an earlier owner, perhaps a Java server with the address of this node, had a clock that was past the end of the layout: %w. Give the node another worker ID; with registry zookeeper that is another --snowflake-address",
			ErrAhead, own.Number, err)
	case err != nil:
		return nil, fmt.Errorf("%w: %w", leaf.ErrBadRequest, err)
	}
	s.from = s.gen.from(own.Floor)
	h.held = s // Close releases it, also if it interrupts the write
	if err := h.writeFile(h.base, own, s.asked, inner, own.Bound); err != nil {
		return nil, err
	}
	h.log.Info("worker ID claimed", "worker", own.Number, "registry", h.info.Name, "confirmed", confirmed,
		"from", time.UnixMilli(max(own.Floor, h.rt.Now().UnixMilli())).UTC(), "until", time.UnixMilli(own.Bound).UTC())
	return s, nil
}

// sleep is the generator's wait on our runtime.
func (h *Holder) sleep(ctx context.Context, d time.Duration) error { return h.rt.Wait(ctx, nil, d) }

// chance is the generator's source of random low bits on our runtime.
func (h *Holder) chance() uint64 { return uint64(h.rt.Jitter(1 << 20)) }

// keep holds the session until it is lost or the Holder is closed.
func (h *Holder) keep(s *session) {
	lost := h.await(s)
	if lost == nil && h.publish(s) {
		h.firstAttempt(nil) // not before: a caller that has seen Start return expects IDs
		h.rt.Go(func() { h.extend(s) })
		lost = h.renew(s)
	} else {
		close(s.extended)
	}
	if lost == nil {
		close(s.ended)
		_ = h.rt.Wait(context.Background(), s.extended, 0)
		return // closing: Close releases what is held
	}
	// First of all, nothing more is issued.
	end := s.gen.Stop()
	h.set(Refused, lost)
	h.session.Store(nil)
	close(s.ended)
	_ = h.rt.Wait(context.Background(), s.extended, 0)
	if errors.Is(lost, errOutOfReach) {
		h.giveUp(s, end, lost)
		return
	}
	h.forfeit(s, end, lost)
	h.withdraw(*s.claim.Load())
}

// forfeit notes that a claim is lost. The file gives up the time up to T as well, so
// that neither this process nor the next one goes on from it without the registry.
func (h *Holder) forfeit(s *session, end int64, lost error) {
	inner := max(end, s.inner.Load()) // with less, a record that is still there would show an old copy
	h.held = nil
	h.counters.losses.Add(1)
	h.mu.Lock()
	h.previous = s.previous(inner)
	h.mu.Unlock()
	if err := h.writeFile(h.base, *s.claim.Load(), s.asked, inner, inner); err != nil {
		h.log.Warn("the loss of the worker ID could not be written to worker.json", "error", err)
	}
	h.cfg.Alarms.Raise(leaf.Alarm{
		Code: leaf.AlarmClaim, Subject: alarmSubject,
		Text: fmt.Sprintf("worker ID %d is lost, a new one is being claimed: %v", s.number(), lost),
		Do:   "nothing, unless it repeats: then leaf worker list shows which node takes it",
	})
}

// await keeps the claim while its floor lies in the future. It returns the loss, if
// the claim is lost meanwhile.
func (h *Holder) await(s *session) error {
	_, began := h.read()
	var seen lookout
	// A clock that stands still, or is slow, shortly before the floor must not make the
	// node write to its registry without a pause.
	least := time.Millisecond
	for !h.isClosing() {
		now := h.rt.Now()
		left := time.UnixMilli(s.from).Sub(now)
		if left <= 0 {
			break
		}
		h.waits(s, left)
		h.firstAttempt(nil)
		pause := left
		if left < least {
			pause, least = least, min(2*least, h.cfg.Renew)
		}
		h.pause(min(pause, h.cfg.Renew))
		if lost := h.renewOnce(s); lost != nil {
			return lost
		}
		// By now another number may be of use.
		if _, elapsed := h.read(); left > h.cfg.longest() && elapsed-began > h.cfg.Lease {
			if lost := h.outOfReach(s); lost != nil {
				return lost
			}
		}
		if lost := h.sooner(s, &seen); lost != nil {
			return lost
		}
	}
	if h.isClosing() {
		return nil
	}
	// A claim that was made below its floor has a T that ends there.
	if s.bound.Load() < h.unit(h.rt.Now().Add(h.cfg.Ahead)) {
		if lost := h.renewOnce(s); lost != nil {
			return lost
		}
	}
	h.extendOnce(s)
	return nil
}

// waits reports a floor in the future. A short wait is the normal end of a crash; a
// longer one than any claim causes means that some clock was or is wrong.
func (h *Holder) waits(s *session, left time.Duration) {
	from := time.UnixMilli(s.from).UTC().Format(time.RFC3339)
	reason := fmt.Errorf("worker ID %d may be used from %s on, in %v, because until then another node may issue with it", s.number(), from, left.Round(time.Millisecond))
	switch {
	case s.after != "":
		reason = fmt.Errorf("worker ID %d may be used from %s on, in %v, because its last owner, a process with the address %s, may issue with it until then", s.number(), from, left.Round(time.Millisecond), s.after)
	case !h.info.Shared && h.info.Kind == Fixed:
		reason = fmt.Errorf("worker ID %d may be used from %s on, in %v, because an earlier process of this node may have issued with it until then", s.number(), from, left.Round(time.Millisecond))
	case left > h.cfg.Margin && s.claim.Load().Bound <= s.from:
		reason = fmt.Errorf("%w. That is so when the registry is new, was wiped or lost records, and when the last owner of the number was cut off or had a clock that was ahead. Only before the first node of a cluster that has issued no ID starts, run leaf worker init with the settings of that node, and never where Java servers have issued IDs", reason)
	}
	if left > h.cfg.quiet(h.info)+h.cfg.Layout.Unit { // the floor is rounded up to a unit
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
func (h *Holder) publish(s *session) bool {
	h.mu.Lock()
	open := !h.isClosing()
	if open {
		h.session.Store(s)
	}
	h.mu.Unlock()
	if open {
		h.set(Serving, nil)
		h.cfg.Alarms.Clear(leaf.AlarmClaim, alarmSubject)
		h.cfg.Alarms.Clear(leaf.AlarmClock, clockSubject)
	}
	return open
}

func (h *Holder) announce(own Record) {
	ctx, cancel := h.rt.WithTimeout(h.base, h.cfg.aside())
	defer cancel()
	err := h.reg.Announce(ctx, h.self(own))
	news := err != nil && (h.mute == nil || h.mute.Error() != err.Error())
	if h.mute = err; news && !h.isClosing() {
		h.log.Warn("this node is not announced to its peers; their clock checks miss it", "error", err)
	}
}

// withdraw ends the announcement of a claim that is over.
func (h *Holder) withdraw(own Record) {
	ctx, cancel := h.rt.WithTimeout(h.base, h.cfg.Timeout)
	defer cancel()
	if err := h.reg.Withdraw(ctx, h.self(own)); err != nil && !h.isClosing() {
		h.log.Debug("the entry of this node among the peers could not be removed; it expires", "error", err)
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
	end := h.clock.end
	if left := end.Sub(h.rt.Now()); left < year {
		which, do := "", "plan a new epoch or layout, with a new registry and new tables: its IDs can be equal to those of this one"
		if i := slices.IndexFunc(h.layouts, func(l snowflake.Layout) bool { return l.End().Equal(end) }); i > 0 {
			which, do = " "+h.cfg.Layouts[i-1], "take it out of snowflake.layouts before; with it, the node issues nothing from then on, also of other layouts"
		}
		h.cfg.Alarms.Raise(leaf.Alarm{
			Code: leaf.AlarmExhausted, Subject: layoutSubject,
			Text: fmt.Sprintf("the layout%s has no more IDs from %s on, in %d days", which, end.Format(time.DateOnly), int(left.Hours()/24)),
			Do:   do,
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
