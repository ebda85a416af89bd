package drivertest

import (
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/internal/test/long"
	"github.com/leaf-idgen/leaf/segment"
)

var concurrentCases = []testCase{
	{"many callers share one row", func(t *testing.T, b Backend) {
		concurrent(t, b, []int64{7}, func(_, _ int, req *segment.Request) { req.Step, req.Length = 7, 7 })
	}},
	{"many callers that do not know the step", func(t *testing.T, b Backend) {
		concurrent(t, b, []int64{13}, func(_, _ int, req *segment.Request) { req.Step = 0 })
	}},
	{"many callers with lengths and beliefs of their own", func(t *testing.T, b Backend) {
		concurrent(t, b, []int64{7}, func(caller, load int, req *segment.Request) {
			req.Step = []int64{0, 7, 13}[(caller+load)%3]
			req.Length = int64(1 + caller + load)
		})
	}},
	{"many callers while the step is edited", func(t *testing.T, b Backend) {
		concurrent(t, b, []int64{7, 13, 1000, 1}, func(_, _ int, req *segment.Request) {
			req.Step = []int64{0, 7, 13, 1000, 1}[rand.N(5)]
			req.Length = req.Step
		})
	}},
	{"the step is edited between every two loads", editedBetweenLoads},
	{"two nodes share one row", twoNodes},
}

// concurrent lets many callers reserve and checks that their ranges are disjoint
// and together cover exactly what the row was advanced by. With several steps
// another goroutine edits the row all the while.
func concurrent(t *testing.T, b Backend, steps []int64, ask func(caller, load int, req *segment.Request)) {
	const loads, start = 6, 1
	callers := 16
	if long.Asked() {
		callers = 64
	}
	put(t, b, "tag", start, steps[0])
	stores := []Store{b.Store}
	if b.Other != nil {
		stores = append(stores, b.Other(t))
	}
	stop := make(chan struct{})
	var editor, group sync.WaitGroup
	if len(steps) > 1 {
		editor.Go(func() {
			for i := 0; ; i++ {
				select {
				case <-stop:
					return
				default:
				}
				if err := b.Store.Update(ctx(t), "tag", segment.Change{Step: &steps[i%len(steps)]}); err != nil {
					t.Errorf("edit the step: %v", err)
					return
				}
			}
		})
	}
	var mu sync.Mutex
	var ranges []leaf.Range
	for caller := range callers {
		group.Go(func() {
			for load := range loads {
				req := request("tag", 0, 1)
				ask(caller, load, &req)
				res, err := stores[caller%len(stores)].Reserve(ctx(t), req)
				if err != nil {
					t.Errorf("Reserve(%+v): %v", req, err)
					return
				}
				if want := req.LengthFor(res.Step); res.Range.Len() != want || !slices.Contains(steps, res.Step) {
					t.Errorf("Reserve(%+v) = %v, want %d IDs", req, res, want)
				}
				mu.Lock()
				ranges = append(ranges, res.Range)
				mu.Unlock()
			}
		})
	}
	group.Wait()
	close(stop)
	editor.Wait()
	if end := covered(t, ranges, start); end != maxID(t, b.Store, "tag") {
		t.Errorf("the ranges end at %d, max_id is %d", end, maxID(t, b.Store, "tag"))
	}
}

// covered checks that ranges follow each other from start on without a gap or an
// overlap, and returns where they end.
func covered(t *testing.T, ranges []leaf.Range, start int64) int64 {
	t.Helper()
	slices.SortFunc(ranges, func(a, b leaf.Range) int { return int(a.Lo - b.Lo) })
	for _, r := range ranges {
		if r.Lo != start || r.Len() == 0 {
			t.Fatalf("range %v, want one that starts at %d", r, start)
		}
		start = r.Hi
	}
	return start
}

func editedBetweenLoads(t *testing.T, b Backend) {
	random := rand.New(rand.NewPCG(1, 2))
	steps := []int64{1, 7, 13, 1000, 5_000_000, segment.MaxStep}
	step := int64(7)
	put(t, b, "tag", 1, step)
	next := int64(1)
	for range 60 {
		req := request("tag", step, 1+random.Int64N(100)) // what was true before the edit
		step = steps[random.IntN(len(steps))]
		if err := b.Store.Update(ctx(t), "tag", segment.Change{Step: &step}); err != nil {
			t.Fatal(err)
		}
		res, err := b.Store.Reserve(ctx(t), req)
		want := segment.Reservation{Range: leaf.Range{Lo: next, Hi: next + req.LengthFor(step)}, Step: step}
		if err != nil || res != want {
			t.Fatalf("Reserve(%+v) with step %d = %v, %v; want %v", req, step, res, err, want)
		}
		next = res.Range.Hi
	}
}

func twoNodes(t *testing.T, b Backend) {
	if b.Other == nil {
		t.Skip("this store has no second node")
	}
	put(t, b, "tag", 1, 13)
	stores := []Store{b.Store, b.Other(t)}
	next := int64(1)
	for i := range 10 {
		res, err := stores[i%2].Reserve(ctx(t), request("tag", 13, 7))
		if want := (leaf.Range{Lo: next, Hi: next + 7}); err != nil || res.Range != want {
			t.Fatalf("Reserve by node %d = %v, %v; want %v", i%2, res, err, want)
		}
		next += 7
	}
}
