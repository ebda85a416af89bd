package sequence

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/internal/bounded"
)

// load is a call of Blocks for one section. Every caller of the section waits for it.
type load struct {
	done chan struct{} // closed at the end
	err  error         // read it after done; nil if the caller that made the load has left
}

// load gets the block that is missing, or waits for the caller that gets one already.
func (p *Positions) load(ctx context.Context, number int, missing outcome) error {
	if err := ctx.Err(); err != nil {
		return p.gaveUp(number, err)
	}
	s := &p.sections[number]
	s.mu.Lock()
	l := s.load
	switch {
	case l != nil:
		s.mu.Unlock()
		if err := p.rt.Wait(ctx, l.done, 0); err != nil {
			return p.gaveUp(number, err)
		}
		return l.err
	case s.end != missing.end:
		s.mu.Unlock() // another caller has got one meanwhile
		return nil
	}
	l = &load{done: make(chan struct{})}
	s.load = l
	s.mu.Unlock()

	n := max(missing.want, p.cfg.Step)
	b, err := bounded.Recover("reserve", func() (Block, error) { return p.blocks.Reserve(ctx, number, n) })
	p.loads.Add(1)

	s.mu.Lock()
	s.load = nil
	if err == nil {
		err = s.extendLocked(b, n)
	}
	s.mu.Unlock()
	switch ended := ctx.Err(); {
	case err == nil:
	case ended != nil: // the callers that wait have time left, perhaps
		err = p.gaveUp(number, errors.Join(ended, err))
	default:
		err = fmt.Errorf("reserve a block for section %d of tag %q: %w", number, p.cfg.Tag, err)
		l.err = err
	}
	close(l.done)
	return err
}

// loadAll gets the blocks that are missing in several sections, some at a time. It returns the errors by section.
func (p *Positions) loadAll(ctx context.Context, missing map[int]outcome) map[int]error {
	type result struct {
		section int
		err     error
	}
	sections := make(chan int, len(missing))
	for _, number := range slices.Sorted(maps.Keys(missing)) { // so that a simulation can repeat a run
		sections <- number
	}
	close(sections)
	results := make(chan result, len(missing))
	group := bounded.NewGroup(p.rt)
	for range min(p.cfg.MaxLoads, len(missing)) {
		group.Start(func() {
			for number := range sections {
				results <- result{number, p.load(ctx, number, missing[number])}
			}
		})
	}
	_ = group.Wait(context.Background()) // Blocks honours ctx
	close(results)
	errs := make(map[int]error)
	for r := range results {
		if r.err != nil {
			errs[r.section] = r.err
		}
	}
	return errs
}

// gaveUp is the error of a call that waited as long as it could.
func (p *Positions) gaveUp(section int, cause error) error {
	return &waitError{section, p.cfg.Tag, cause}
}

// waitError is a leaf.ErrExhausted. The cause is for errors.Is; of it clients hear the class only.
type waitError struct {
	section int
	tag     string
	cause   error
}

func (e *waitError) Error() string {
	return fmt.Sprintf("%v: no block for section %d of tag %q arrived in time", leaf.ClassOf(e).Err, e.section, e.tag) // as the protocols say by the cause
}

func (e *waitError) Unwrap() []error { return []error{leaf.ErrExhausted, e.cause} }
