package owner

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/leaf-idgen/leaf/worker"
)

// round renews the session, reads the registry, and does what this node owes: it ends sessions that
// are silent, gives slots to those whose share they are, and takes its own. The renewal comes first,
// and counts for a term only if the listing after it still names the node: so it does for a term what
// one write of its record would do.
func (s *Slots) round() error {
	if err := s.open(); err != nil {
		return err
	}
	if s.session != nil && s.ranOut() {
		s.log.Warn("the session of this node in the registry of slots was not renewed in time; a new one begins", "session", s.session.Number)
		s.endSession() // if it were renewed without an answer, no node could serve its slots
	}
	until := s.leaseFromNow()
	renewed, renewErr := s.renew()
	records, err := call(s.base, s, s.records.List)
	if err != nil {
		return errors.Join(renewErr, err)
	}
	s.saw(newView(records, s.cfg.Slots))
	s.publish()
	if renewed && s.session != nil {
		s.until = until
		s.extend()
	}
	err = s.act()
	s.publish()
	return errors.Join(renewErr, err)
}

// act does what the listing asks for.
func (s *Slots) act() error {
	if err := s.open(); err != nil {
		return err
	}
	err := s.bury()
	if failed := s.join(); failed != nil {
		return errors.Join(err, failed)
	}
	return errors.Join(err, s.share())
}

// open reads the namespace, or declares it, until it is known.
func (s *Slots) open() error {
	if s.namespace != nil {
		return nil
	}
	want := worker.StoredNamespace{Namespace: worker.Namespace{Name: s.cfg.Namespace, Fingerprint: fmt.Sprintf("slots=%d", s.cfg.Slots)}}
	stored, err := call(s.base, s, func(ctx context.Context) (*worker.StoredNamespace, error) { return s.records.Namespace(ctx, &want) })
	switch {
	case err != nil:
		return err
	case stored.Name != want.Name || stored.Fingerprint != want.Fingerprint:
		return fmt.Errorf("%w: its slots belong to namespace %q with %s, this node's to %q with %s; all nodes of a cluster need the same, and two clusters a registry, path or prefix each",
			worker.ErrForeign, stored.Name, stored.Fingerprint, want.Name, want.Fingerprint)
	}
	s.namespace = stored
	return nil
}

// put writes a record in the namespace as it is known.
func (s *Slots) put(ctx context.Context, r worker.Record) (worker.Record, error) {
	sent := r // a call that is given up goes on with it
	sent.Incarnation = s.namespace.Incarnation
	version, err := call(ctx, s, func(ctx context.Context) (string, error) { return s.records.Put(ctx, sent) })
	r.Version = version
	return r, err
}

// isFresh reports whether the session was renewed a moment ago, and says what it should: rounds that callers
// ask for need not write it again.
func (s *Slots) isFresh() bool {
	return s.session.Floor == s.cfg.weight() && s.until-s.cfg.Elapsed() > s.cfg.Lease-s.cfg.every()/2
}

// renew writes the session anew, unless it is fresh. After any error the listing tells what is stored: see saw.
func (s *Slots) renew() (renewed bool, err error) {
	if s.session == nil || s.isFresh() {
		return false, nil
	}
	next := *s.session
	next.Floor, next.Bound = s.cfg.weight(), s.cfg.Lease.Milliseconds()
	if next, err = s.put(s.base, next); err != nil {
		if errors.Is(err, worker.ErrLost) {
			s.namespace, err = nil, nil // perhaps it was replaced; if the session is lost, saw finds it so
		}
		return false, err
	}
	s.session = &next
	return true, nil
}

// saw takes over a listing that has arrived, and what it says of the own session: a version that an
// unanswered call of this node has written, or that the session is over.
func (s *Slots) saw(v *view) {
	now := s.rt.Now()
	s.view = v
	for n := range s.silent {
		if r := v.numbers[n]; r.Version == "" || r.Released {
			delete(s.silent, n)
		}
	}
	for n, r := range v.numbers {
		s.longest = max(s.longest, leaseOf(r))
		if !r.Released {
			s.silent.note(n, r.Version, now)
		}
	}
	if own := s.session; own != nil {
		stored := v.numbers[own.Number]
		if stored.Nonce == own.Nonce && !stored.Released {
			s.session = &stored
		} else {
			s.log.Warn("another node has ended the session of this node, because it was silent, or its record is gone; a new one begins", "session", own.Number)
			s.endSession()
		}
	}
	for k, r := range v.slots {
		if s.orphaned(k, r) {
			s.orphans.note(r.Number, r.Version, now)
		} else {
			delete(s.orphans, r.Number)
		}
		s.known[k] = max(s.known[k], r.Floor)
	}
	s.tellShared(now)
	s.tellDamage(now)
}

// orphaned reports whether a slot may have an owner that its record does not tell of: the record is older
// than what was seen of the slot, or that of a session that is not there. Such an owner does not
// find itself in the record any more, so its term runs out within the lease. While another session
// that is there is named, that node decides.
func (s *Slots) orphaned(slot int, r worker.Record) bool {
	_, found := s.view.sessions[r.Nonce]
	older := r.Floor < s.known[slot]
	switch {
	case r.Version == "":
		return false // see mark
	case !r.Released && s.view.alive(r.Nonce):
		return older && s.session != nil && r.Nonce == s.session.Nonce
	case r.Released || s.past[r.Nonce]:
		return older
	}
	return older || !found
}

// endSession ends all terms, and lets the next round begin with a new session.
func (s *Slots) endSession() {
	s.past[s.session.Nonce] = true
	s.session, s.namespace = nil, nil
	s.secret.Store(nil)
	s.endTerms()
}

func (s *Slots) endTerms() {
	for k := range s.terms {
		s.endTerm(k)
	}
}

func (s *Slots) endTerm(k int) {
	if t := s.terms[k].Load(); t != nil {
		t.end()
	}
}

// leaseFromNow returns until when a write that is sent now lets terms run, by Elapsed.
func (s *Slots) leaseFromNow() time.Duration { return s.cfg.Elapsed() + s.cfg.Lease }

// ranOut reports whether the terms of the session have run out.
func (s *Slots) ranOut() bool { return s.cfg.Elapsed() >= s.until }

// extend lets the terms whose slots are still this node's run on, and ends the others.
func (s *Slots) extend() {
	for k, stored := range s.view.slots {
		t := s.terms[k].Load()
		if t == nil {
			continue
		}
		if stored.Nonce == s.session.Nonce && stored.Floor == t.epoch && !stored.Released {
			t.extend(s.until)
		} else {
			t.end()
		}
	}
}

// join begins a session, if there is none: a record under a nonce that only this write has, and with the
// weight 0 until its first renewal. So a write whose answer is lost makes a session that gets no slot,
// and ends by its silence.
func (s *Slots) join() error {
	if s.session != nil {
		return nil
	}
	free := int64(-1)
	for n := int64(0); n < maxSessions && free < 0; n++ {
		if r := s.view.numbers[n]; r.Version == "" && r.Damage == "" || r.Released && !s.named(r.Nonce) {
			free = n
		}
	}
	if free < 0 {
		return fmt.Errorf("%d nodes have a session in the registry of slots, and none has ended", maxSessions)
	}
	until := s.leaseFromNow()
	own, err := s.put(s.base, worker.Record{
		Number: free, Version: s.view.numbers[free].Version, Nonce: rand.Text(), Address: s.cfg.Address,
		Bound: s.cfg.Lease.Milliseconds(),
	})
	switch {
	case errors.Is(err, worker.ErrLost): // another node took the number, or the namespace was replaced: again
		s.namespace = nil
		s.poke()
		return nil
	case err != nil:
		return err
	}
	s.session, s.until = &own, until
	s.view.put(own)
	s.poke()
	return nil
}

// named reports whether a slot's record names the session with this nonce.
func (s *Slots) named(nonce string) bool {
	for _, r := range s.view.slots {
		if r.Nonce == nonce && !r.Released {
			return true
		}
	}
	return false
}

// bury ends the sessions of others that were silent for their lease and the margin, and those of this
// process before. The write fails if the session was renewed meanwhile; once it has succeeded, no renewal
// can.
func (s *Slots) bury() error {
	var failed error
	for _, n := range slices.Sorted(maps.Keys(s.view.numbers)) {
		r := s.view.numbers[n]
		own := s.session != nil && n == s.session.Number
		silent := s.past[r.Nonce] || s.silent.unchangedFor(n, leaseOf(r), s.rt.Now())
		if r.Released || r.Damage != "" || own || !silent {
			continue
		}
		r.Released = true
		switch over, err := s.put(s.base, r); {
		case err == nil:
			s.log.Info("ended a session that is silent; its slots are free", "address", r.Address, "session", n)
			s.view.put(over)
		case !errors.Is(err, worker.ErrLost):
			failed = err
		}
	}
	return failed
}
