package owner

import (
	"time"

	"github.com/leaf-idgen/leaf/worker"
)

// Numbers of records: those of sessions first, then one for each slot. In a session's record Floor is
// the weight; in a slot's record it is the epoch. Bound is the lease in ms in both, Nonce that of the
// session, and Released says that the session is over, or that the slot has no owner.
const maxSessions = 1024

func number(slot int) int64 { return maxSessions + int64(slot) }

// view is what the registry showed in one listing, with what this node has written since.
type view struct {
	sessions map[string]worker.Record // by nonce
	numbers  map[int64]worker.Record  // sessions by number
	slots    []worker.Record          // without a Version: there is no record that can be read
	damage   map[int64]string         // why the records of slots cannot be read, by number; -1: one or more without a number
}

func newView(records []worker.Record, slots int) *view {
	v := &view{sessions: map[string]worker.Record{}, numbers: map[int64]worker.Record{}, slots: make([]worker.Record, slots), damage: map[int64]string{}}
	for k := range v.slots {
		v.slots[k].Number = number(k)
	}
	for _, r := range records {
		switch slot := r.Number - maxSessions; {
		case r.Number < 0: // of which slot, or session, cannot be read
			v.damage[-1] = r.Damage
		case slot < 0:
			v.put(r)
		case slot >= int64(slots):
		case r.Damage != "":
			v.damage[r.Number] = r.Damage
		default:
			v.slots[slot] = r
		}
	}
	return v
}

func (v *view) put(session worker.Record) {
	v.numbers[session.Number] = session
	if session.Nonce != "" {
		v.sessions[session.Nonce] = session
	}
}

// alive reports whether the session with this nonce is in the registry and not over.
func (v *view) alive(nonce string) bool {
	r, found := v.sessions[nonce]
	return found && !r.Released
}

// best returns the session whose share the slot is, without any of the nonce except. The weight 0 counts
// only where no session has more, and then an address of one machine only where no session has another one.
// Without a session the result is the zero record.
func (v *view) best(slot int, except string) (best worker.Record) {
	var top float64
	rank := -1
	for nonce, r := range v.sessions {
		own := rankOf(r)
		if r.Released || nonce == except || own < rank {
			continue
		}
		if bid := score(r.Address, max(r.Floor, 1), slot); own > rank || bid > top || bid == top && nonce < best.Nonce {
			rank, top, best = own, bid, r
		}
	}
	return best
}

// rankOf returns what counts before all bids.
func rankOf(session worker.Record) (rank int) {
	if session.Floor > 0 {
		rank += 2
	}
	if !ofOneMachine(session.Address) {
		rank++
	}
	return rank
}

// sighting is since when, by this node's clock, something has been as it is.
type sighting struct {
	as    string
	since time.Time
}

// sightings are those of sessions, or of slots without a known owner, by number. A moment is
// taken when the answer of the registry has arrived: what it shows was written before.
type sightings map[int64]sighting

func (s sightings) note(number int64, as string, now time.Time) {
	if old, found := s[number]; !found || old.as != as {
		s[number] = sighting{as, now}
	}
}

// unchangedFor reports whether the number has been as it is for the lease and the margin, by the
// monotonic clock: a wall clock that is set must not shorten the wait.
func (s sightings) unchangedFor(number int64, lease time.Duration, now time.Time) bool {
	old, found := s[number]
	return found && now.Sub(old.since) >= lease+margin(lease)
}

func leaseOf(r worker.Record) time.Duration { return time.Duration(r.Bound) * time.Millisecond }
