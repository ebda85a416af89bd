package fence

import "sync"

// sightings are the entries of the cluster fence as this process saw them last, by tag.
// They outlive the tags' rows, as the entries do.
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

// set is for who has compared the entry with what was seen before.
func (s *sightings) set(tag string, h Held) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.last[tag] = h
}

// add is for everybody else. An entry that is older than one which was seen, or of
// another incarnation, must not hide that from who compares, and tells of numbers in
// use all the same.
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
