package fence

import "sync"

// sightings are the newest entries of the cluster fence that this process saw, by tag. Like
// the entries, they stay when the tag's row is deleted.
type sightings struct {
	mu   sync.Mutex
	last map[string]Held
}

// of returns the tag's entry, the zero Held if none was seen.
func (s *sightings) of(tag string) Held {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.last[tag]
}

// set replaces the tag's entry. The caller has compared it with the previous one.
func (s *sightings) set(tag string, h Held) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.last[tag] = h
}

// distrust forgets the versions and keeps the ends: the fence was restored from a backup or lost
// entries, so the version of any tag may be lower from now on. The merge that follows answers for
// all tags. Otherwise the next load of each tag would find a loss, and begin a merge of all tags.
func (s *sightings) distrust() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for tag, h := range s.last {
		s.last[tag] = Held{Entry: Entry{End: h.End}}
	}
}

// add notes an entry that the caller has not compared with the previous one. If it is older,
// or of another incarnation, the previous one stays, so that the next load still sees the
// difference; only its end is raised, because the numbers below are in use.
func (s *sightings) add(tag string, h Held) {
	s.mu.Lock()
	defer s.mu.Unlock()
	was, known := s.last[tag]
	if known && (was.space != h.space || was.Version > h.Version) {
		was.End = max(was.End, h.End)
		h = was
	}
	s.last[tag] = h
}
