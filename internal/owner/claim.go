package owner

import (
	"context"
	"crypto/rand"
	"errors"
	"time"

	"github.com/leaf-idgen/leaf/worker"
)

// share takes the slots that are this node's share and free, and gives away those that are another
// node's: first the slots that callers wait for. When that has lasted for half the time between two rounds, or a
// caller begins to wait, the rest waits for the next round: no renewal and no caller waits for it.
func (s *Slots) share() error {
	began := s.rt.Now()
	var others []int
	for k := range s.view.slots {
		if !s.wanted[k].Swap(false) {
			others = append(others, k)
		} else if err := s.settleInTime(k, began); err != nil {
			return err
		}
	}
	for _, k := range others {
		if len(s.wake) > 0 {
			return nil
		}
		if err := s.settleInTime(k, began); err != nil {
			return err
		}
	}
	return nil
}

// settleInTime is settle, unless the round that began then has lasted too long.
func (s *Slots) settleInTime(k int, began time.Time) error {
	if s.session == nil || s.rt.Now().Sub(began) > s.cfg.every()/2 || s.ranOut() {
		return nil
	}
	if err := s.settle(k); !errors.Is(err, worker.ErrLost) {
		return err
	}
	return nil
}

// settle does what this node owes one slot.
func (s *Slots) settle(k int) error {
	r, best := s.view.slots[k], s.view.best(k, "")
	ours := best.Nonce == s.session.Nonce
	held := r.Nonce == s.session.Nonce && !r.Released
	t := s.terms[k].Load()
	switch {
	case r.Version == "":
		if ours {
			return s.mark(k)
		}
	case s.orphaned(k, r) && !s.orphans.unchangedFor(r.Number, s.longest, s.rt.Now()): // it may have an owner
	case held && !ours:
		return s.give(s.base, k, best)
	case held && t != nil && t.epoch == r.Floor && t.Valid():
	case held, !s.view.alive(r.Nonce), r.Released, s.past[r.Nonce]: // given to this node, or its term ran out; or free
		if ours {
			return s.take(k)
		}
	}
	return nil
}

// mark makes the record of a slot that has none, and names a session that does not exist. A record can be
// seen to stay as it is. Where there is none, an owner may have come and gone since the last look, and its
// term may run on: from this write on it finds that the slot is not its own.
func (s *Slots) mark(k int) error {
	stored, err := s.put(s.base, worker.Record{Number: number(k), Nonce: rand.Text(), Address: s.cfg.Address, Floor: s.known[k], Bound: s.cfg.Lease.Milliseconds()})
	if err == nil {
		s.wrote(k, stored)
	}
	return err
}

// take begins a new term of a slot. The record must be as it was seen: it is in no other session's
// hands. The term lasts as long as the session, from its last renewal on: when another node has ended the
// session since, that node may take over what it holds at once.
func (s *Slots) take(k int) error {
	s.endTerm(k)
	r := s.view.slots[k]
	stored, err := s.put(s.base, worker.Record{
		Number: r.Number, Version: r.Version, Nonce: s.session.Nonce, Address: s.cfg.Address,
		Floor: s.known[k] + 1, Bound: s.cfg.Lease.Milliseconds(),
	})
	if err != nil {
		return err
	}
	t := &Term{epoch: stored.Floor, elapsed: s.cfg.Elapsed}
	t.until.Store(int64(s.until))
	s.terms[k].Store(t)
	s.wrote(k, stored)
	return nil
}

// give ends the term, and writes who owns the slot now: the session to, or no session if that is the zero
// record. The node that gets the slot begins a term of its own when it sees this.
func (s *Slots) give(ctx context.Context, k int, to worker.Record) error {
	s.endTerm(k)
	r := s.view.slots[k]
	r.Floor = s.known[k] + 1
	if to.Nonce == "" {
		r.Released = true
	} else {
		r.Nonce, r.Address, r.Bound = to.Nonce, to.Address, to.Bound
	}
	stored, err := s.put(ctx, r)
	if err == nil {
		s.wrote(k, stored)
	}
	return err
}

// wrote notes what this node has written of a slot, and lets calls find the new owner at once.
func (s *Slots) wrote(k int, r worker.Record) {
	s.view.slots[k], s.known[k] = r, r.Floor
	delete(s.orphans, r.Number)
	s.publish()
}

// leave gives the slots to the other nodes, and ends the session.
func (s *Slots) leave(ctx context.Context) error {
	if s.session == nil || s.namespace == nil {
		return nil
	}
	own := *s.session
	var failed error
	for k, r := range s.view.slots {
		if r.Nonce == own.Nonce && !r.Released {
			failed = errors.Join(failed, s.give(ctx, k, s.view.best(k, own.Nonce)))
		}
	}
	own.Released = true
	_, err := s.put(ctx, own)
	s.session = nil
	return errors.Join(failed, err)
}
