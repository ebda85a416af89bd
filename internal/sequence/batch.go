package sequence

import (
	"cmp"
	"context"
	"fmt"
	"sync"

	"github.com/leaf-idgen/leaf"
)

// Request asks for the next Count numbers of an entity, 0 to leaf.MaxBatch, which are From or larger. It is all that
// Positions can do: NextN is one without From, Peek one without both, and SkipTo one without Count.
type Request struct {
	Entity Entity
	Count  int
	From   int64
}

// Result is what one Request of a batch got: numbers, or an error as of Positions.SkipTo. Without Count the range is
// empty, and begins at the smallest number that can come next.
type Result struct {
	Range leaf.Range
	Err   error
}

// NextEach answers 1 to MaxRequests requests, each by itself; the results have the order of the requests. An entity may
// be in several requests: they count as calls at the same time.
// The error is leaf.ErrBadRequest, for the whole batch.
func (p *Positions) NextEach(ctx context.Context, requests []Request) ([]Result, error) {
	if len(requests) < 1 || len(requests) > MaxRequests {
		return nil, leaf.BadField("requests", len(requests), fmt.Sprintf("must be 1 to %d", MaxRequests))
	}
	left := make([]int, len(requests)) // the indices of those without a result
	for i, r := range requests {
		err := checkFrom(r.From)
		if r.Count != 0 {
			err = cmp.Or(err, checkCount(r.Count))
		}
		if err != nil {
			return nil, fmt.Errorf("requests[%d]: %w", i, err)
		}
		left[i] = i
	}
	b := batch{p: p, requests: requests, results: make([]Result, len(requests)), taken: make([]taken, 0, len(requests))}
	missing := b.take(left)
	var lost []int
	if len(b.short) == 0 {
		lost = b.confirm()
	}
	if len(b.short)+len(lost) > 0 {
		b.finish(ctx, missing, lost)
	}
	return b.results, nil
}

// batch is one call of NextEach.
type batch struct {
	p        *Positions
	requests []Request
	results  []Result
	taken    []taken // the results that hold in their terms only
	short    []int   // the requests whose section is short of numbers
}

// taken is a result with its term.
type taken struct {
	index, section int
	term           Term
}

// finish answers what the first take did not: it loads blocks, and takes again. The call holds its first numbers meanwhile, so
// the terms are asked when all numbers are there, and never before.
func (b *batch) finish(ctx context.Context, missing map[int]outcome, lost []int) {
	ctx, cancel := b.p.rt.WithTimeout(ctx, b.p.cfg.MaxWait)
	defer cancel()
	admission := sync.OnceValues(func() (context.Context, error) { return admit(ctx) })
	for rounds := 0; len(b.short)+len(lost) > 0; {
		if len(lost) > 0 {
			rounds++
		}
		var left []int
		for _, i := range lost {
			if rounds < maxLost {
				left = append(left, i)
			} else {
				b.results[i].Err = b.p.restless(b.requests[i].Entity.Section())
			}
		}
		var errs map[int]error
		var admitted error
		if len(b.short) > 0 {
			var loading context.Context
			if loading, admitted = admission(); admitted == nil {
				errs = b.p.loadAll(loading, missing)
			}
		}
		for _, i := range b.short {
			if err := cmp.Or(admitted, errs[b.requests[i].Entity.Section()]); err == nil {
				left = append(left, i)
			} else {
				b.results[i].Err = err
			}
		}
		lost = nil
		if missing = b.take(left); len(b.short) == 0 {
			lost = b.confirm()
		}
	}
}

// take answers the requests for which there are numbers. The others are in b.short; it returns which blocks their sections miss.
func (b *batch) take(todo []int) (missing map[int]outcome) {
	b.short = nil
	for _, i := range todo {
		r := b.requests[i]
		section := r.Entity.Section()
		out := b.p.sections[section].do(b.p, op{key: b.p.key(r.Entity), count: int64(r.Count), to: r.From})
		if out.term == nil {
			if b.short = append(b.short, i); missing == nil {
				missing = make(map[int]outcome)
			}
			out.want = max(out.want, missing[section].want)
			missing[section] = out
			continue
		}
		if first, err := out.answer(r.From); err != nil {
			b.results[i].Err = err
		} else {
			b.results[i].Range = leaf.Range{Lo: first, Hi: first + int64(r.Count)}
		}
		b.taken = append(b.taken, taken{i, section, out.term})
	}
	return missing
}

// confirm asks the terms of all that was taken. It returns the requests whose numbers are lost because the term has ended.
func (b *batch) confirm() (lost []int) {
	held := b.taken[:0]
	for _, t := range b.taken {
		if b.p.confirm(&b.p.sections[t.section], t.term) {
			held = append(held, t)
			continue
		}
		b.results[t.index] = Result{}
		lost = append(lost, t.index)
	}
	b.taken = held
	return lost
}
