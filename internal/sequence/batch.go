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
	results := make([]Result, len(requests))
	short, missing, lost := p.takeEach(requests, left, results)
	if len(short)+len(lost) > 0 {
		p.takeSlowly(ctx, requests, results, short, missing, lost)
	}
	return results, nil
}

// takeSlowly answers the requests that takeEach did not answer: it loads blocks, and takes again.
func (p *Positions) takeSlowly(ctx context.Context, requests []Request, results []Result, short []int, missing map[int]outcome, lost []int) {
	ctx, cancel := p.rt.WithTimeout(ctx, p.cfg.MaxWait)
	defer cancel()
	admission := sync.OnceValues(func() (context.Context, error) { return admit(ctx) })
	for rounds := 0; len(short)+len(lost) > 0; {
		if len(lost) > 0 {
			rounds++
		}
		var left []int
		for _, i := range lost {
			if rounds < maxLost {
				left = append(left, i)
			} else {
				results[i].Err = p.restless(requests[i].Entity.Section())
			}
		}
		var errs map[int]error
		var admitted error
		if len(short) > 0 {
			var loading context.Context
			if loading, admitted = admission(); admitted == nil {
				errs = p.loadAll(loading, missing)
			}
		}
		for _, i := range short {
			if err := cmp.Or(admitted, errs[requests[i].Entity.Section()]); err == nil {
				left = append(left, i)
			} else {
				results[i].Err = err
			}
		}
		short, missing, lost = p.takeEach(requests, left, results)
	}
}

// takeEach answers the requests for which there are numbers. It returns those whose section is short of numbers, which
// blocks these sections miss, and those whose numbers are lost because the term had ended. All numbers are taken before
// the first term is asked.
func (p *Positions) takeEach(requests []Request, todo []int, results []Result) (short []int, missing map[int]outcome, lost []int) {
	type taken struct {
		index, section int
		term           Term
	}
	all := make([]taken, 0, len(todo))
	for _, i := range todo {
		r := requests[i]
		section := r.Entity.Section()
		out := p.sections[section].do(p, op{key: p.key(r.Entity), count: int64(r.Count), to: r.From})
		if out.term == nil {
			if short = append(short, i); missing == nil {
				missing = make(map[int]outcome)
			}
			out.want = max(out.want, missing[section].want)
			missing[section] = out
			continue
		}
		if first, err := out.answer(r.From); err != nil {
			results[i].Err = err
		} else {
			results[i].Range = leaf.Range{Lo: first, Hi: first + int64(r.Count)}
		}
		all = append(all, taken{i, section, out.term})
	}
	for _, t := range all {
		if !p.confirm(&p.sections[t.section], t.term) {
			results[t.index] = Result{}
			lost = append(lost, t.index)
		}
	}
	return short, missing, lost
}
