package idlog

// sweep sees all entries sorted by key and lo, and counts what repeats and what is
// missing. Both follow from end, the highest ID seen so far of the key: an entry that
// begins at or below it overlaps what came before, one that begins beyond end+1 leaves
// a gap.
//
// The overlap is exactly [lo, min(hi, end)]. What lies in it appears in this entry,
// and in the earlier one that reaches up to end, since that one begins no later.
type sweep struct {
	keys []KeyReport // by number, with key, IDs and Disorders filled in
	list int

	key  *KeyReport // nil before the first entry
	no   uint32
	end  int64
	dup  entry // run of duplicates that may still grow
	open bool  // there is one

	found []entry // the first runs of duplicates
}

func (s *sweep) add(e entry) error {
	if s.key == nil || e.key != s.no {
		s.closeRun()
		s.key, s.no = &s.keys[e.key], e.key
		s.key.Lowest, s.key.Highest, s.end = e.lo, e.hi, e.hi
		s.key.Distinct = length(e.lo, e.hi)
		return nil
	}
	if e.lo <= s.end {
		s.overlap(entry{lo: e.lo, hi: min(e.hi, s.end), key: e.key})
		if e.hi > s.end {
			s.key.Distinct = sum(s.key.Distinct, length(s.end+1, e.hi))
		}
	} else {
		if e.lo > s.end+1 {
			s.gap(Gap{Lo: s.end + 1, Hi: e.lo - 1, Len: length(s.end+1, e.lo-1)})
		}
		s.key.Distinct = sum(s.key.Distinct, length(e.lo, e.hi))
	}
	s.end = max(s.end, e.hi)
	s.key.Highest = s.end
	return nil
}

func (s *sweep) gap(g Gap) {
	s.key.Gaps++
	s.key.Missing = sum(s.key.Missing, g.Len)
	if g.Len > s.key.Largest.Len {
		s.key.Largest = g
	}
}

// overlap adds o to the duplicates. Overlaps come sorted by lo, but may repeat and
// contain one another, where an ID appears three times.
func (s *sweep) overlap(o entry) {
	if s.open && (o.lo <= s.dup.hi || o.follows(s.dup)) {
		if o.hi > s.dup.hi {
			s.key.Duplicates = sum(s.key.Duplicates, uint64(o.hi)-uint64(s.dup.hi))
			s.dup.hi = o.hi
		}
		return
	}
	s.closeRun()
	s.dup, s.open = o, true
	s.key.Duplicates = sum(s.key.Duplicates, length(o.lo, o.hi))
	s.key.Runs++
}

// closeRun ends the run of duplicates; it is also called after the last entry.
func (s *sweep) closeRun() {
	if s.open && len(s.found) < s.list {
		s.found = append(s.found, s.dup)
	}
	s.open = false
}
