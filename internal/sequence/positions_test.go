package sequence_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/internal/sequence"
)

// Alone and undisturbed, every entity counts 1, 2, 3, across blocks, and a section writes once a step.
func TestCountsFromOne(t *testing.T) {
	c, a := one(t, sequence.Config{Step: 10})
	entities := inSection(3, 5)
	for want := int64(1); want <= 25; want++ {
		for _, e := range entities {
			if got := next(t, a, e); got != want {
				t.Fatalf("entity %v got %d, want %d", e, got, want)
			}
		}
	}
	if c.count() != 3 {
		t.Errorf("%d blocks for 25 numbers, want 3", c.count())
	}
	if r, err := a.NextN(t.Context(), entities[0], 100); err != nil || r != (leaf.Range{Lo: 26, Hi: 126}) {
		t.Errorf("more than a step at once: %v, %v", r, err)
	}
	if p, err := a.Peek(t.Context(), entities[0]); err != nil || p != 126 {
		t.Errorf("peek %d, %v, want 126", p, err)
	}
	if p, err := a.Peek(t.Context(), entities[1]); err != nil || p != 26 {
		t.Errorf("peek %d, %v, want 26", p, err)
	}
	if got := next(t, a, inSection(3, 6)[5]); got != 1 {
		t.Errorf("a new entity got %d, want 1", got)
	}
}

func TestSkipTo(t *testing.T) {
	_, a := one(t, sequence.Config{Step: 10})
	e := sequence.Number(1)
	for _, tt := range []struct{ to, want int64 }{{5, 5}, {5, 5}, {2, 5}, {0, 5}, {5000, 5000}, {5000 + sequence.MaxSkip, 5000 + sequence.MaxSkip}} {
		if got, err := a.SkipTo(t.Context(), e, tt.to); err != nil || got != tt.want {
			t.Errorf("to %d: %d, %v, want %d", tt.to, got, err, tt.want)
		}
	}
	if got := next(t, a, e); got != 5000+sequence.MaxSkip {
		t.Errorf("got %d after the skip", got)
	}
	for _, to := range []int64{-1, 5011 + 2*sequence.MaxSkip, sequence.MaxEnd, sequence.MaxEnd + 1} {
		if got, err := a.SkipTo(t.Context(), e, to); !errors.Is(err, leaf.ErrBadRequest) {
			t.Errorf("to %d: %d, %v, want ErrBadRequest", to, got, err)
		}
	}
	if got, err := a.SkipTo(t.Context(), inSection(9, 1)[0], 50); err != nil || got != 50 {
		t.Errorf("in a section without a block: %d, %v", got, err)
	}
}

// A node that owned the section before does not know its end any more: it refuses no skip.
func TestSkipAtAnEarlierOwner(t *testing.T) {
	c := newCluster()
	a, b := c.node(t, "a", sequence.Config{Step: 10}), c.node(t, "b", sequence.Config{Step: 10})
	e, to := sequence.Number(7), int64(1+2*sequence.MaxSkip)
	for name, skip := range map[string]func() error{
		"one": func() error { _, err := a.SkipTo(t.Context(), e, to); return err },
		"a batch": func() error {
			got, err := a.NextEach(t.Context(), []sequence.Request{{Entity: e, From: to}})
			return errors.Join(err, got[0].Err)
		},
	} {
		c.own("a")
		next(t, a, e)
		c.own("b")
		if err := skip(); !errors.Is(err, leaf.ErrNotReady) {
			t.Errorf("%s: %v, want ErrNotReady, for the owner can be asked", name, err)
		}
	}
	if got, err := b.SkipTo(t.Context(), e, 5+sequence.MaxSkip); err != nil || got != 5+sequence.MaxSkip {
		t.Errorf("at the owner: %d, %v", got, err)
	}
}

// All that Positions can do is a request of a batch.
func TestBatchOfAll(t *testing.T) {
	_, a := one(t, sequence.Config{Step: 10})
	e := inSection(3, 4)
	got, err := a.NextEach(t.Context(), []sequence.Request{{Entity: e[0], Count: 2, From: 5}, {Entity: e[1]}, {Entity: e[2], From: 30}, {Entity: e[3], From: sequence.MaxEnd}})
	want := []leaf.Range{{Lo: 5, Hi: 7}, {Lo: 1, Hi: 1}, {Lo: 30, Hi: 30}, {}}
	for i, r := range got {
		if r.Range != want[i] || errors.Is(r.Err, leaf.ErrBadRequest) != (i == 3) {
			t.Errorf("request %d: %v, %v, want %v", i, r.Range, r.Err, want[i])
		}
	}
	if err != nil || next(t, a, e[0]) != 7 || next(t, a, e[1]) != 1 || next(t, a, e[2]) != 30 {
		t.Errorf("%v, or the entities go on elsewhere", err)
	}
}

// admission counts who asks for it.
type admission struct {
	err   error
	asked int
}

func (a *admission) Admit() error { a.asked++; return a.err }

// A call says once that it is about to wait for blocks, and asks whether it may, in its own goroutine. It loads nothing if it
// may not.
func TestAdmission(t *testing.T) {
	c, a := one(t, sequence.Config{Step: 10})
	for _, refusal := range []error{leaf.ErrExhausted, nil} {
		ad := &admission{err: refusal}
		heard := 0
		ctx := context.WithValue(t.Context(), leaf.AdmissionKey{}, leaf.Admission(ad))
		ctx = context.WithValue(ctx, leaf.WaitKey{}, func() { heard++ })
		got, err := a.NextEach(ctx, []sequence.Request{{Entity: sequence.Number(1), Count: 1}, {Entity: sequence.Number(2), Count: 1}})
		if err != nil || !errors.Is(got[0].Err, refusal) || !errors.Is(got[1].Err, refusal) || ad.asked != 1 {
			t.Errorf("refusal %v: %v, %v, asked %d times", refusal, got, err, ad.asked)
		}
		if _, err := a.NextN(ctx, sequence.Number(3), 50); !errors.Is(err, refusal) || ad.asked != 2 {
			t.Errorf("refusal %v: %v, asked %d times", refusal, err, ad.asked)
		}
		if heard != 2 {
			t.Errorf("refusal %v: two calls said %d times that they wait", refusal, heard)
		}
	}
	if c.count() != 3 {
		t.Errorf("%d blocks were asked for", c.count())
	}
}

func TestLimits(t *testing.T) {
	c, a := one(t, sequence.Config{})
	for _, n := range []int{0, -1, leaf.MaxBatch + 1} {
		if r, err := a.NextN(t.Context(), sequence.Number(1), n); !errors.Is(err, leaf.ErrBadRequest) {
			t.Errorf("%d numbers: %v, %v", n, r, err)
		}
		if n == 0 {
			continue // a look
		}
		if r, err := a.NextEach(t.Context(), []sequence.Request{{Count: 1}, {Entity: sequence.Number(2), Count: n}}); !errors.Is(err, leaf.ErrBadRequest) {
			t.Errorf("%d numbers in a batch: %v, %v", n, r, err)
		}
	}
	for _, n := range []int{0, sequence.MaxRequests + 1} {
		if _, err := a.NextEach(t.Context(), make([]sequence.Request, n)); !errors.Is(err, leaf.ErrBadRequest) {
			t.Errorf("%d requests: %v", n, err)
		}
	}
	if c.count() != 0 {
		t.Error("a bad request reserved a block")
	}
	for _, cfg := range []sequence.Config{
		{Step: -1},
		{Step: leaf.MaxBatch + 1},
		{MaxResident: sequence.Sections - 1},
		{MaxResident: sequence.MostResident + 1},
		{MaxLoads: -1},
		{MaxLoads: sequence.Sections + 1},
		{MaxWait: time.Microsecond},
		{MaxWait: time.Hour},
	} {
		if _, err := sequence.New(nil, cfg); !errors.Is(err, leaf.ErrBadRequest) {
			t.Errorf("%+v: %v", cfg, err)
		}
	}
}

// What Blocks answers is not believed.
func TestBadBlocks(t *testing.T) {
	c, a := one(t, sequence.Config{Step: 10})
	e := sequence.Number(7)
	last := next(t, a, e)
	for name, spoil := range map[string]func(b sequence.Block) sequence.Block{
		"no term":    func(b sequence.Block) sequence.Block { b.Term = nil; return b },
		"short":      func(b sequence.Block) sequence.Block { b.Range.Hi--; return b },
		"long":       func(b sequence.Block) sequence.Block { b.Range.Hi++; return b },
		"inverted":   func(b sequence.Block) sequence.Block { b.Range.Lo, b.Range.Hi = b.Range.Hi, b.Range.Lo; return b },
		"below zero": func(b sequence.Block) sequence.Block { b.Range = leaf.Range{Lo: -5, Hi: -5 + b.Range.Len()}; return b },
		"past the end": func(b sequence.Block) sequence.Block {
			b.Range = leaf.Range{Lo: sequence.MaxEnd + 1 - b.Range.Len(), Hi: sequence.MaxEnd + 1}
			return b
		},
		"the one before":  func(b sequence.Block) sequence.Block { b.Range = leaf.Range{Lo: 1, Hi: 1 + b.Range.Len()}; return b },
		"overlaps by one": func(b sequence.Block) sequence.Block { b.Range = leaf.Range{Lo: 10, Hi: 10 + b.Range.Len()}; return b },
		"of another term": func(b sequence.Block) sequence.Block {
			return sequence.Block{Range: leaf.Range{Lo: 5, Hi: 5 + b.Range.Len()}, Term: c.own("a")}
		},
		"nothing, and err": nil,
	} {
		c.intercept(func(_ string, _ int, do func() sequence.Block) (sequence.Block, error) {
			if spoil == nil {
				return do(), errDown
			}
			return spoil(do()), nil
		})
		if r, err := a.NextN(t.Context(), e, 30); err == nil {
			t.Errorf("%s: served %v", name, r)
		}
	}
	c.intercept(nil)
	if got := next(t, a, e); got <= last {
		t.Errorf("%d after %d", got, last)
	}
}

func TestEndOfNumbers(t *testing.T) {
	c, a := one(t, sequence.Config{Step: 10})
	e := sequence.Number(7)
	c.move(e.Section(), sequence.MaxEnd-16)
	if r, err := a.NextN(t.Context(), e, 15); err != nil || r != (leaf.Range{Lo: sequence.MaxEnd - 15, Hi: sequence.MaxEnd}) {
		t.Fatalf("the last numbers: %v, %v", r, err)
	}
	if got, err := a.Next(t.Context(), e); err == nil {
		t.Errorf("%d is past the end", got)
	}
}

func TestErrors(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, a := one(t, sequence.Config{MaxWait: time.Second})
		e := sequence.Number(7)
		c.intercept(func(string, int, func() sequence.Block) (sequence.Block, error) {
			return sequence.Block{}, fmt.Errorf("%w: %w", leaf.ErrUnknownTag, errDown)
		})
		if _, err := a.Next(t.Context(), e); !errors.Is(err, leaf.ErrUnknownTag) || !strings.Contains(err.Error(), `tag "chat"`) {
			t.Errorf("of Blocks: %v", err)
		}
		c.intercept(func(string, int, func() sequence.Block) (sequence.Block, error) { panic("broken") })
		if _, err := a.Next(t.Context(), e); err == nil {
			t.Error("a panic of Blocks is no error")
		}
		hang := make(chan struct{})
		c.intercept(func(_ string, _ int, do func() sequence.Block) (sequence.Block, error) { <-hang; return do(), nil })
		go func() { _, _ = a.Next(context.Background(), e) }()
		synctest.Wait()
		begun := time.Now()
		if _, err := a.Next(t.Context(), e); !errors.Is(err, leaf.ErrExhausted) || time.Since(begun) != time.Second || !strings.Contains(err.Error(), `of tag "chat"`) {
			t.Errorf("beside a hung call: %v after %v", err, time.Since(begun))
		}
		late, cancel := context.WithCancel(t.Context())
		c.intercept(func(string, int, func() sequence.Block) (sequence.Block, error) {
			cancel()
			return sequence.Block{}, leaf.ErrUnknownTag
		})
		if _, err := a.Next(late, inSection(8, 1)[0]); !errors.Is(err, leaf.ErrUnknownTag) || !strings.Contains(err.Error(), leaf.ErrUnknownTag.Error()) {
			t.Errorf("of a row that is gone, too late: %v, of class %s", err, leaf.ClassOf(err).Code)
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if got, err := a.NextEach(ctx, []sequence.Request{{Entity: e, Count: 1}}); err != nil || !errors.Is(got[0].Err, context.Canceled) {
			t.Errorf("a caller that has left: %v, %v", got, err)
		}
		if got, err := a.Next(ctx, inSection(9, 1)[0]); !errors.Is(err, context.Canceled) || c.count() != 4 {
			t.Errorf("a caller that has left reserved a block: %d, %v", got, err)
		}
		close(hang)
		synctest.Wait()
		c.intercept(nil)
		if got := next(t, a, e); got < 1 {
			t.Errorf("afterwards: %d", got)
		}
	})
}

// Many callers of a section that misses a block reserve one, together. The one that asks for it may leave.
func TestOneLoadForAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, a := one(t, sequence.Config{Step: 100})
		e := sequence.Number(7)
		goOn := make(chan struct{})
		var fail error
		c.intercept(func(_ string, _ int, do func() sequence.Block) (sequence.Block, error) { <-goOn; return do(), fail })
		ctx, cancel := context.WithCancel(t.Context())
		left := make(chan error)
		go func() { _, err := a.Next(ctx, e); left <- err }()
		synctest.Wait()
		got := make(chan int64)
		for range 10 {
			go func() { n, _ := a.Next(context.Background(), e); got <- n }()
		}
		synctest.Wait()
		if c.count() != 1 {
			t.Errorf("%d calls for one block", c.count())
		}
		cancel()
		fail = context.Canceled
		goOn <- struct{}{}
		if err := <-left; !errors.Is(err, context.Canceled) {
			t.Errorf("the caller that left: %v", err)
		}
		synctest.Wait()
		fail = nil
		close(goOn)
		seen := map[int64]bool{}
		for range 10 {
			seen[<-got] = true
		}
		if len(seen) != 10 || seen[0] || c.count() != 2 {
			t.Errorf("numbers %v by %d calls", seen, c.count())
		}
	})
}

// A batch answers each request by itself: sections have different owners.
func TestBatch(t *testing.T) {
	c, a := one(t, sequence.Config{Step: 10, MaxLoads: 4})
	c.intercept(func(_ string, section int, do func() sequence.Block) (sequence.Block, error) {
		if section%2 == 1 {
			return sequence.Block{}, fmt.Errorf("%w: section %d has another owner", leaf.ErrNotReady, section)
		}
		return do(), nil
	})
	var requests []sequence.Request
	for i := range 3000 { // about three of a section, and each entity twice
		requests = append(requests, sequence.Request{Entity: sequence.Number(uint64(i / 2)), Count: 1 + i%20})
	}
	results, err := a.NextEach(t.Context(), requests)
	if err != nil {
		t.Fatal(err)
	}
	given := map[string]bool{}
	for i, r := range results {
		if odd := requests[i].Entity.Section()%2 == 1; odd != errors.Is(r.Err, leaf.ErrNotReady) || odd != (r.Range.Len() == 0) {
			t.Fatalf("section %d: %+v", requests[i].Entity.Section(), r)
		}
		if r.Err == nil && r.Range.Len() != int64(requests[i].Count) {
			t.Fatalf("%v for %d", r.Range, requests[i].Count)
		}
		for id := range leaf.IDs([]leaf.Range{r.Range}) {
			what := fmt.Sprint(requests[i].Entity, " ", id)
			if given[what] {
				t.Fatalf("given twice: %s", what)
			}
			given[what] = true
		}
	}
}

// TestBatchHoldsNothingFromBefore: a batch has the number of one entity and waits for those of another one. When the term ends
// meanwhile, as a repair of the row ends it, the first number is from below the repair: the batch takes another one.
func TestBatchHoldsNothingFromBefore(t *testing.T) {
	const step = 100
	c, p := one(t, sequence.Config{Step: step})
	early, late := inSection(0, 1)[0], inSection(1, 1)[0]
	next(t, p, early)
	c.intercept(func(_ string, section int, do func() sequence.Block) (sequence.Block, error) {
		if section == 1 {
			c.intercept(nil)
			c.own("a")
		}
		return do(), nil
	})
	got, err := p.NextEach(t.Context(), []sequence.Request{{Entity: early, Count: 1}, {Entity: late, Count: 1}})
	if err != nil || got[0].Err != nil || got[1].Err != nil {
		t.Fatal(got, err)
	}
	if got[0].Range.Lo <= step {
		t.Errorf("a batch got %v after the numbers up to %d were dropped", got[0].Range, step)
	}
}
