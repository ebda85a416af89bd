package sqldb

import (
	"context"

	"github.com/leaf-idgen/leaf/worker"
)

// slots are the records that say which node serves which tags in strict order, in the tables leaf_slot,
// leaf_slot_bound and leaf_slot_namespace. They have the form of the tables of worker IDs, and nothing else
// in common with them.
//
// A bound is a lease here, and not a moment up to which numbers are in use. So records that are deleted, or
// that a backup brings back, repeat nothing.
type slots struct{ *Records }

// Slots returns the records of slots in the same database, with connections as those of Records.
func (s *Store) Slots() (worker.Records, error) {
	r, err := s.recordsIn(&s.dialect.slots, idleSlots)
	if err != nil {
		return nil, err
	}
	return slots{r}, nil
}

// Reserved implements worker.Records: no other program has slots.
func (slots) Reserved(context.Context) ([]worker.Adoptable, error) { return nil, nil }

// Announce, Withdraw and Peers implement worker.Records. There is no table of peers: the records of
// sessions say which nodes run.
func (slots) Announce(context.Context, worker.Peer) error { return nil }

func (slots) Withdraw(context.Context, worker.Peer) error { return nil }

func (slots) Peers(context.Context) ([]worker.Peer, error) { return nil, nil }
