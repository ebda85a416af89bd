package sequence

import (
	"context"
	"fmt"
	"hash/maphash"
	"sync/atomic"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/segment"
)

// MaxEnd is the highest end of a section: every number is below it.
const MaxEnd = segment.MaxMaxID

// maxLost is how often a call takes numbers anew whose term has ended meanwhile.
const maxLost = 4

// Positions holds the positions of a tag's entities on one node. Make it with New. It has no goroutine of its own and
// needs no end. All methods are safe for concurrent use.
type Positions struct {
	cfg    Config
	rt     leaf.Runtime
	blocks Blocks
	limit  int // of the positions of a section

	seed  seed         // of the places of positions
	texts maphash.Seed // of the keys of texts

	loads, evicted, lost atomic.Int64

	sections [Sections]section
}

// New returns the Positions of a tag that has no block yet; it makes no call.
func New(blocks Blocks, cfg Config) (*Positions, error) {
	cfg = cfg.WithDefaults()
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	texts := maphash.MakeSeed()
	return &Positions{
		cfg: cfg, rt: cfg.Runtime, blocks: blocks, limit: cfg.MaxResident / Sections, texts: texts,
		seed: seed{maphash.String(texts, "xor"), maphash.String(texts, "factor") | 1},
	}, nil
}

// key returns what the position of the entity is kept by. Two entities may have the same one, and share it then.
func (p *Positions) key(e Entity) uint64 {
	if e.text != "" {
		return maphash.String(p.texts, e.text)
	}
	return e.number
}

// Next returns the entity's next number. Errors: leaf.ErrNotReady if this node does not own the entity's section,
// leaf.ErrExhausted if no block arrived in time, and those of Blocks.
func (p *Positions) Next(ctx context.Context, e Entity) (int64, error) {
	return p.do(ctx, e, op{count: 1})
}

// NextN returns the entity's next n numbers, 1 to leaf.MaxBatch. Errors as of Next.
func (p *Positions) NextN(ctx context.Context, e Entity, n int) (leaf.Range, error) {
	if err := checkCount(n); err != nil {
		return leaf.Range{}, err
	}
	first, err := p.do(ctx, e, op{count: int64(n)})
	if err != nil {
		return leaf.Range{}, err
	}
	return leaf.Range{Lo: first, Hi: first + int64(n)}, nil
}

// Peek returns the smallest number that the entity's next call can get. Every number that was given before is smaller.
// Errors as of Next.
func (p *Positions) Peek(ctx context.Context, e Entity) (int64, error) { return p.do(ctx, e, op{}) }

// SkipTo makes every later number of the entity at least as large as number, and returns the smallest that can come
// next. It never lowers that, and may be repeated. leaf.ErrBadRequest if number is more than MaxSkip above the end of the
// section; other errors as of Next.
func (p *Positions) SkipTo(ctx context.Context, e Entity, number int64) (int64, error) {
	if err := checkFrom(number); err != nil {
		return 0, err
	}
	return p.do(ctx, e, op{to: number})
}

func checkFrom(number int64) error {
	if number < 0 || number > MaxEnd {
		return leaf.BadField("number", number, fmt.Sprintf("must be 0 to %d", int64(MaxEnd)))
	}
	return nil
}

// tooFar is the error of a skip for which a block would have to be too long.
func tooFar(number int64, out outcome) error {
	return leaf.BadField("number", number, fmt.Sprintf("must be at most %d now, %d above the end of the section", out.end+MaxSkip, MaxSkip))
}

// admit asks for admission before a call waits for a block, once, in the goroutine of the call. The context that it
// returns, of blocks that several goroutines load, asks no more and tells of no wait.
func admit(ctx context.Context) (context.Context, error) {
	loading := context.WithValue(context.WithValue(ctx, leaf.AdmissionKey{}, nil), leaf.WaitKey{}, nil)
	return loading, leaf.Admit(ctx)
}

func checkCount(n int) error {
	if n < 1 || n > leaf.MaxBatch {
		return leaf.BadField("count", n, fmt.Sprintf("must be 1 to %d", leaf.MaxBatch))
	}
	return nil
}

// do does the op, and gets the block that is missing for it.
func (p *Positions) do(ctx context.Context, e Entity, o op) (int64, error) {
	o.key = p.key(e)
	number := e.Section()
	s := &p.sections[number]
	if out := s.do(p, o); out.term != nil && p.confirm(s, out.term) {
		return out.answer(o.to)
	}
	ctx, err := admit(ctx)
	if err != nil {
		return 0, err
	}
	ctx, cancel := p.rt.WithTimeout(ctx, p.cfg.MaxWait)
	defer cancel()
	for lost := 0; lost < maxLost; {
		out := s.do(p, o)
		switch {
		case out.term != nil && p.confirm(s, out.term):
			return out.answer(o.to)
		case out.term != nil:
			lost++
			continue
		}
		if err := p.load(ctx, number, out); err != nil {
			return 0, err
		}
	}
	return 0, p.restless(number)
}

// confirm reports whether what a call took in the term may be answered, and drops the term if not. Call it after
// the numbers were taken: asked before, the process may stand still between answer and number, for as long as
// another node needs to give larger ones.
func (p *Positions) confirm(s *section, term Term) bool {
	if term.Valid() {
		return true
	}
	s.leave(term)
	p.lost.Add(1)
	return false
}

// restless is the error of a call that lost its term at each try.
func (p *Positions) restless(section int) error {
	return fmt.Errorf("%w: section %d of tag %q changes its owner", leaf.ErrNotReady, section, p.cfg.Tag)
}

// Status is what Positions count.
type Status struct {
	Resident int   // positions in memory
	Loads    int64 // blocks that were asked for
	Evicted  int64 // positions that left the memory for others
	Lost     int64 // calls that took numbers in a term that had ended
}

// Status returns what was counted. It drops the memory of terms that have ended: call it now and then.
func (p *Positions) Status() Status {
	st := Status{Loads: p.loads.Load(), Evicted: p.evicted.Load(), Lost: p.lost.Load()}
	for i := range p.sections {
		s := &p.sections[i]
		if term := s.ended(); term != nil {
			s.leave(term)
		}
		s.mu.Lock()
		st.Resident += s.table.used
		s.mu.Unlock()
	}
	return st
}
