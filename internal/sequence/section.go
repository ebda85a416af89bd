package sequence

import (
	"fmt"
	"math"
	"slices"
	"sync"
)

// section is what the entities of one section have in common. At every moment, with mu released:
//
//   - [base, end) lies within one span of blocks, all of the term;
//   - every position is above base and not above end;
//   - an entity of the section that was given a number of the span has its position above that number, or it
//     has none and the base is above that number.
type section struct {
	mu    sync.Mutex
	term  Term  // nil: there is no block, and so no position
	base  int64 // where entities without a position begin
	end   int64 // of the highest block; stays when the term has ended
	table table // of positions
	load  *load // under way; nil: none is
}

// op is what a call does to one entity: it takes count numbers, which are to or larger. Without either it looks.
type op struct {
	key   uint64
	count int64
	to    int64
}

// outcome is what a section answers to an op.
type outcome struct {
	first int64 // the numbers are [first, first+count); without count: the smallest that can come next
	term  Term  // must be valid, asked after this outcome; nil: a block is missing
	want  int64 // how many numbers the block must have, or more than MaxSkip if a skip goes too far
	end   int64 // of the section, when a block was missing, or the skip goes too far
}

// answer returns the result of an outcome whose term is valid: also where a section ends is known in a term only.
func (out outcome) answer(to int64) (first int64, err error) {
	if out.want > MaxSkip {
		return 0, tooFar(to, out)
	}
	return out.first, nil
}

// do does the op, or says which block is missing.
func (s *section) do(p *Positions, o op) outcome {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.term == nil {
		return outcome{want: max(o.count, 1), end: s.end}
	}
	next := s.base + int64(s.table.get(p.seed, o.key))
	first := max(next, o.to)
	after := first + o.count
	if after > s.end {
		out := outcome{want: max(o.count, after-s.end), end: s.end}
		if out.want > MaxSkip {
			out.term = s.term
		}
		return out
	}
	if after > next {
		s.rememberLocked(p, o.key, after)
	}
	return outcome{first: first, term: s.term}
}

// rememberLocked sets the entity's next number, which is larger than before. s.mu is held.
func (s *section) rememberLocked(p *Positions, key uint64, next int64) {
	if next-s.base > math.MaxUint32 {
		s.raiseLocked(p, next-math.MaxUint32/2)
	}
	if s.table.used >= p.limit && s.table.get(p.seed, key) == 0 {
		s.evictLocked(p)
	}
	if next > s.base { // else the base has reached it, and says enough
		s.table.put(p.seed, key, uint32(next-s.base))
	}
}

// raiseLocked raises the base and drops the positions that it reaches. s.mu is held.
func (s *section) raiseLocked(p *Positions, base int64) {
	by, before := base-s.base, s.table.used
	s.base = base
	s.table.rebuild(p.seed, len(s.table.cells), by)
	p.evicted.Add(int64(before - s.table.used))
}

// evictLocked makes room: it raises the base over about a quarter of the positions, the lowest. There is at
// least one position, and one goes. The first cells are a sample: where a position is, is chance. s.mu is held.
func (s *section) evictLocked(p *Positions) {
	const enough = 64
	sample := make([]uint32, 0, enough)
	for _, at := range s.table.cells {
		if at.ahead != 0 {
			if sample = append(sample, at.ahead); len(sample) == enough {
				break
			}
		}
	}
	slices.Sort(sample)
	s.raiseLocked(p, s.base+int64(sample[len(sample)/4]))
}

// extendLocked takes over a block of n numbers. s.mu is held.
func (s *section) extendLocked(b Block, n int64) error {
	switch {
	case b.Term == nil || b.Range.Len() != n || b.Range.Lo < 0 || b.Range.Hi > MaxEnd:
		return fmt.Errorf("answered %v for %d numbers: dropped", b.Range, n)
	case b.Range.Lo < s.end:
		return fmt.Errorf("answered %v, below %d where the highest block ended: dropped", b.Range, s.end)
	case b.Term != s.term || b.Range.Lo > s.end:
		s.term, s.base, s.table = b.Term, b.Range.Lo, table{}
	}
	s.end = b.Range.Hi
	return nil
}

// leave drops what is in memory of a term that has ended.
func (s *section) leave(term Term) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.term == term {
		s.term, s.table = nil, table{}
	}
}

// ended returns the term of the section if it has ended, and else nil.
func (s *section) ended() Term {
	s.mu.Lock()
	term := s.term
	s.mu.Unlock()
	if term == nil || term.Valid() {
		return nil
	}
	return term
}
