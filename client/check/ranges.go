package check

import (
	"slices"
	"sort"

	"github.com/leaf-idgen/leaf"
)

// ranges is a set of IDs: ranges in order that neither meet nor overlap.
type ranges struct{ list []leaf.Range }

// add adds r, which is not empty. id is the first of its IDs that was there before.
//
// IDs mostly grow, so the place is mostly the end, and nothing is moved.
func (s *ranges) add(r leaf.Range) (id int64, twice bool) {
	// The entries from i to below k touch or overlap r.
	i := sort.Search(len(s.list), func(n int) bool { return s.list[n].Hi >= r.Lo })
	k := i
	joined := r
	for ; k < len(s.list) && s.list[k].Lo <= r.Hi; k++ {
		old := s.list[k]
		if lo := max(old.Lo, r.Lo); !twice && lo < min(old.Hi, r.Hi) {
			id, twice = lo, true
		}
		joined = leaf.Range{Lo: min(joined.Lo, old.Lo), Hi: max(joined.Hi, old.Hi)}
	}
	s.list = slices.Replace(s.list, i, k, joined)
	return id, twice
}

// forget drops the smallest entries beyond most, a tenth of most at once, and returns how
// many IDs they had.
func (s *ranges) forget(most int) (ids int64) {
	if len(s.list) <= most {
		return 0
	}
	n := len(s.list) - most + most/10
	for _, r := range s.list[:n] {
		ids += r.Len()
	}
	s.list = slices.Delete(s.list, 0, n)
	return ids
}
