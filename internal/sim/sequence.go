package sim

import (
	"context"
	"fmt"
	"time"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/internal/sequence"
	"github.com/leaf-idgen/leaf/segment"
)

// sequences is a sequence whose entities are in two sections: the rows of these are the mode's tags in strict order.
// Each entity is a counter by itself. A call that begins after another one has ended gets larger numbers, whatever nodes
// they ask, and after a skip to a number this number or a larger one.
type sequences struct {
	mode     *segmentMode
	rows     []string // of the sections
	entities []*entity
	config   sequence.Config
}

// entity is what the callers of an entity know together.
type entity struct {
	sequence.Entity
	row  string // of its section
	done int64  // every call that begins now gets a larger number
}

// series is the entity's in the ledger.
func (t *entity) series() Series { return Series{"segment", t.row, t.String()} }

// sequenceName is matched by a rule that some runs have.
const sequenceName = "order"

// newSequences makes six entities, numbers and texts, in one section, and two in another one.
func newSequences(m *segmentMode) *sequences {
	s := &sequences{mode: m}
	s.config = sequence.Config{
		Tag: sequenceName, Step: pick(m.w.rng, int64(1), 10, 100), MaxResident: sequence.Sections * (1 + m.w.rng.IntN(5)), MaxLoads: 1 + m.w.rng.IntN(2),
	}
	want := map[int]int{0: 6, 1: 2}
	for i := 0; len(want) > 0; i++ {
		name := fmt.Sprint(i)
		if i%2 > 0 {
			name = "user-" + name
		}
		e, err := sequence.Parse(name)
		if err != nil {
			panic(err) // the names are right
		}
		switch section := e.Section(); want[section] {
		case 0:
		case 1:
			delete(want, section)
			fallthrough
		default:
			if want[section] > 0 {
				want[section]--
			}
			s.entities = append(s.entities, &entity{Entity: e, row: sequence.RowName(sequenceName, section)})
		}
	}
	for section := range 2 {
		s.rows = append(s.rows, sequence.RowName(sequenceName, section))
	}
	return s
}

// open makes a process's part.
func (s *sequences) open(e *segmentEngine) (*sequence.Positions, error) {
	c := s.config
	c.Runtime = e.proc
	return sequence.New(sequence.Rows{Tag: sequenceName, Tags: rowTags{e.alloc, e}, Terms: slowTerms{e}}, c)
}

// rowTags takes what a section reserves of its row through the checks of all calls.
type rowTags struct {
	*segment.Allocator
	e *segmentEngine
}

// NextN implements sequence.Tags.
func (r rowTags) NextN(ctx context.Context, tag string, n int) (got []leaf.Range, err error) {
	defer func() {
		switch p := recover().(type) {
		case nil:
		case error: // the engine would take a failure for an error of its store
			r.e.mode.w.sched.After(0, func() { panic(p) })
			err = p
		default:
			panic(p)
		}
	}()
	return r.e.take(ctx, tag, n, time.Second, nil)
}

// slowTerms stops the process now and then just before the engine asks for a term, or whether one is valid. There it has
// taken numbers and not answered them, and no other call of the engine would give way.
type slowTerms struct{ e *segmentEngine }

type slowTerm struct {
	segment.Term
	terms slowTerms
}

// Term implements segment.Terms.
func (s slowTerms) Term(tag string) (segment.Term, error) {
	s.stop()
	t, err := s.e.slots.Term(tag)
	return slowTerm{t, s}, err
}

// Valid implements segment.Term.
func (t slowTerm) Valid() bool {
	t.terms.stop()
	return t.Term.Valid()
}

func (s slowTerms) stop() {
	w := s.e.mode.w
	switch n := w.rng.IntN(100); {
	case w.calm || n > 5:
		return
	case n == 0:
		s.e.proc.Pause(w.upTo(2 * s.e.mode.owners.lease))
	}
	s.e.proc.Sleep(1)
}

// callers asks for numbers of entities, and now and then for what is counted.
func (e *segmentEngine) callers() {
	s, rng, p := e.mode.sequences, e.mode.w.rng, e.proc
	for {
		p.Sleep(e.mode.w.upTo(pick(rng, 2*time.Second, 20*time.Second, time.Minute)))
		for range 1 + rng.IntN(5) {
			requests := make([]sequence.Request, 1)
			if rng.IntN(3) == 0 {
				requests = make([]sequence.Request, 1+rng.IntN(6))
			}
			of := make([]*entity, len(requests))
			for i := range requests {
				of[i] = s.entities[rng.IntN(len(s.entities))]
				requests[i] = s.request(of[i])
			}
			if e.ask(of, requests, 1+e.mode.w.upTo(2*time.Second)) != nil && rng.IntN(2) == 0 {
				break
			}
		}
		if rng.IntN(10) > 0 {
			continue
		}
		if st, most := e.entities.Status(), len(s.rows)*s.config.MaxResident/sequence.Sections; st.Resident > most {
			e.mode.w.Failf("%s: %d entities are in memory, and %d may be", e.node.Name, st.Resident, most)
		}
	}
}

// request draws what a caller wants of an entity: mostly some numbers, else a look or a skip.
func (s *sequences) request(t *entity) (r sequence.Request) {
	rng := s.mode.w.rng
	if r.Entity = t.Entity; rng.IntN(4) > 0 {
		r.Count = 1 + rng.IntN(1+rng.IntN(30))
	}
	if rng.IntN(5) == 0 {
		r.From = max(0, t.done-5+rng.Int64N(50))
	}
	return r
}

// ask is a call for numbers of entities. It returns an error if one of them was not served.
func (e *segmentEngine) ask(of []*entity, requests []sequence.Request, limit time.Duration) (failed error) {
	w := e.mode.w
	ctx, cancel := e.proc.WithTimeout(context.Background(), limit)
	defer cancel()
	c := &clientCall{tag: sequenceName, n: 1, began: e.now(), limit: min(limit, time.Second)}
	type before struct{ done, floor int64 }
	begun := make([]before, len(of))
	for i, t := range of {
		begun[i] = before{t.done, e.mode.floors[t.row]}
	}
	e.calls = append(e.calls, c)
	results := e.results(ctx, requests)
	e.left(c)
	for i, r := range results {
		t, want := of[i], requests[i]
		if r.Err != nil {
			if failed = r.Err; leaf.ClassOf(r.Err).Err == nil {
				w.Failf("%s: a call for entity %q got an error of no class: %v", e.node.Name, t, r.Err)
			}
			continue
		}
		first, lossy := r.Range.Lo, len(e.mode.exposed[t.row]) > 0
		switch {
		case r.Range.Len() != int64(want.Count):
			w.Failf("%s: a call for %d numbers of entity %q got %v", e.node.Name, want.Count, t, r.Range)
		case first < want.From:
			w.Failf("%s: a call for numbers of entity %q from %d on got %v", e.node.Name, t, want.From, r.Range)
		case first <= begun[i].done && !lossy:
			w.Failf("%s: a call for entity %q got %v, and calls that had ended before it began had left only what is above %d", e.node.Name, t, r.Range, begun[i].done)
		case first < begun[i].floor && begun[i].floor != e.missed[t.row] && !e.node.Forgot:
			w.Failf("%s gives %v to entity %q after a repair of its row that ended with %d", e.node.Name, r.Range, t, begun[i].floor)
		}
		if want.Count > 0 {
			e.node.Issued(t.series(), r.Range)
		}
	}
	for i, r := range results {
		if r.Err == nil {
			of[i].done = max(of[i].done, r.Range.Hi-1)
		}
	}
	return failed
}

// results asks the engine. One request may go another way than a batch.
func (e *segmentEngine) results(ctx context.Context, requests []sequence.Request) (results []sequence.Result) {
	results = make([]sequence.Result, 1)
	r, only := requests[0], &results[0]
	switch alone := len(requests) == 1 && e.mode.w.rng.IntN(2) == 0; {
	case alone && r.Count > 0 && r.From == 0:
		only.Range, only.Err = e.entities.NextN(ctx, r.Entity, r.Count)
	case alone && r.Count == 0:
		ask := e.entities.Peek
		if r.From > 0 {
			ask = func(ctx context.Context, t sequence.Entity) (int64, error) { return e.entities.SkipTo(ctx, t, r.From) }
		}
		only.Range.Lo, only.Err = ask(ctx, r.Entity)
		only.Range.Hi = only.Range.Lo
	default:
		var err error
		if results, err = e.entities.NextEach(ctx, requests); err != nil {
			e.mode.w.Failf("%s: a call for %v got %v", e.node.Name, requests, err)
		}
	}
	e.proc.MayDie() // a process that died in the driver of its store does not go on
	return results
}

// askAny asks for a number of the first entity of a row.
func (s *sequences) askAny(e *segmentEngine, row string) error {
	for _, t := range s.entities {
		if t.row == row {
			return e.ask([]*entity{t}, []sequence.Request{{Entity: t.Entity, Count: 1}}, 2*time.Second)
		}
	}
	return nil
}
