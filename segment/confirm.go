package segment

import (
	"fmt"
	"time"

	"github.com/leaf-idgen/leaf"
)

// leaf schema apply --accept-rule takes the rule away, and then takes a node for one that has
// ended if it has not entered the list of nodes for ruleAge and listedAge together.
const (
	ruleAge   = 3 * time.Minute // how long ranges count by one comparison of the rule
	listedAge = 2 * time.Minute // how long a comparison counts after an entry
)

// confirm compares the rule again, before a range is reserved and before it counts, if that was
// long ago: the database was away, or this process was suspended, perhaps within the load. After
// such a time the node first enters the list again: until then the command does not see it. It
// then compares the rule in the other databases, too.
func (s *shard) confirm() error {
	confirmed, listed := s.confirmed()
	switch {
	case confirmed:
		return nil
	case !listed:
		s.lookNow()
		return fmt.Errorf("%w: store %q: this node has not entered the list of nodes for a while and does so now", leaf.ErrNotReady, s.name)
	}
	if err := s.bind(); err != nil {
		return err
	}
	for _, other := range s.alloc.shards { // one that does not answer keeps no other from serving
		if confirmed, _ := other.confirmed(); !confirmed && other.admits() == nil {
			_ = other.bind()
		}
	}
	if confirmed, _ := s.confirmed(); !confirmed {
		return fmt.Errorf("%w: store %q: comparing the tag rule took too long", leaf.ErrNotReady, s.name)
	}
	return nil
}

func (s *shard) confirmed() (confirmed, listed bool) {
	now := s.alloc.rt.Now()
	s.mu.Lock()
	defer s.mu.Unlock()
	return since(s.boundAt, now) < ruleAge, s.isListedLocked(now)
}

// isListedLocked reports whether leaf schema apply --accept-rule sees this node, or cannot see
// any. s.mu is held.
func (s *shard) isListedLocked(now time.Time) bool {
	return s.watcher.board == nil || since(s.listedAt, now) < listedAge
}

func (s *shard) listed(at time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.listedAt = at
}

// since is the time from one moment to another by the clock that says more: the monotonic one
// may stand still in a suspension.
func since(at, now time.Time) time.Duration {
	return max(now.Sub(at).Abs(), now.Round(0).Sub(at.Round(0)).Abs())
}
