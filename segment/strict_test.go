package segment_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/segment"
)

// terms says which of several nodes owns the tags of a test.
type terms struct {
	mu    sync.Mutex
	owner *term
}

// term is one of a node. onValid, if set, runs before each answer of Valid.
type term struct {
	of      *terms
	node    string
	onValid func()
}

func (t *term) Valid() bool {
	if t.onValid != nil {
		t.onValid()
	}
	t.of.mu.Lock()
	defer t.of.mu.Unlock()
	return t.of.owner == t
}

// own begins a term of the node, which ends that of the owner before.
func (o *terms) own(node string) *term {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.owner = &term{of: o, node: node}
	return o.owner
}

func (o *terms) end() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.owner = nil
}

// node returns what the node of that name asks.
func (o *terms) node(name string) segment.Terms { return termsOf{o, name} }

type termsOf struct {
	*terms

	name string
}

func (o termsOf) Term(tag string) (segment.Term, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.owner == nil || o.owner.node != o.name {
		return nil, fmt.Errorf("%w: tag %q has another owner", leaf.ErrNotReady, tag)
	}
	return o.owner, nil
}

func strictRow(step int64) segment.Row {
	r := row(step)
	r.Options.Order = segment.OrderStrict
	return r
}

// pair is two nodes, a and b, on one store.
func pair(t *testing.T, r segment.Row) (s *store, o *terms, a, b *segment.Allocator) {
	s, o = newStore(r), &terms{}
	return s, o, node(t, s, nil, segment.Config{NodeID: "a", Terms: o.node("a"), FixedStep: true, MaxWait: 5 * time.Second}), node(t, s, nil, segment.Config{NodeID: "b", Terms: o.node("b"), FixedStep: true, MaxWait: 5 * time.Second})
}

func nextOf(t *testing.T, a *segment.Allocator) int64 {
	t.Helper()
	id, err := a.Next(t.Context(), "order")
	if err != nil {
		t.Fatal(err)
	}
	return id
}

func lostBy(a *segment.Allocator, reason string) int64 {
	for _, l := range a.Status().LostBy {
		if l.Reason == reason {
			return l.IDs
		}
	}
	return -1
}

// A database loses the ranges of the owner, and the owner is gone. Another node has no fence of the tag, but knows the
// IDs that the owner gave to its callers, also where the row has vanished until the old one was put in its place.
func TestStrictOwnerIsGoneWithItsRanges(t *testing.T) {
	for name, tt := range map[string]struct {
		vanishes bool // the row, until an old one comes
		late     bool // the last answer of the owner, which comes in between
	}{
		"the row goes back":                      {},
		"the row vanishes, and an old one comes": {vanishes: true},
		"an answer comes in between":             {vanishes: true, late: true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, o, a, b := pair(t, strictRow(10))
				end, backup := ownerIssues(t, s, o, a, 25)
				hear := func() {
					b.Heard("order", end)
					b.Heard("order", 2) // an older one, late
				}
				if !tt.late {
					hear()
				}
				o.own("b")
				if tt.vanishes {
					s.Remove("order")
					if err := b.Refresh(t.Context(), "order"); err != nil {
						t.Fatal(err)
					}
				}
				if tt.late {
					hear()
				}
				s.Put(backup)
				if tt.vanishes {
					if err := b.Refresh(t.Context(), "order"); err != nil {
						t.Fatal(err)
					}
				}
				if id, err := b.Next(t.Context(), "order"); !errors.Is(err, leaf.ErrRegress) {
					t.Errorf("%d, %v, although IDs below %d are in use", id, err, end)
				}
			})
		})
	}
}

// The answer of the database arrives after the next owner has issued, and is above nothing: no regress.
func TestStrictHeardDuringALoad(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, o, a, _ := pair(t, strictRow(10))
		o.own("a")
		s.set(func(s *store) {
			s.onReserve = func(_ context.Context, _ segment.Request, do func() (segment.Reservation, error)) (segment.Reservation, error) {
				r, err := do()
				s.heal()
				a.Heard("order", r.Range.Hi+5)
				return r, err
			}
		})
		nextOf(t, a)
	})
}

// Whoever owns the tag issues larger numbers than every owner before, and the others issue none.
func TestStrictOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, o, a, b := pair(t, strictRow(10))
		last := int64(0)
		for round, owner := range []string{"a", "b", "a", "a", "b"} {
			o.own(owner)
			issues, refuses := a, b
			if owner == "b" {
				issues, refuses = b, a
			}
			for range 3 {
				if id := nextOf(t, issues); id <= last {
					t.Fatalf("round %d: %s issued %d after %d", round, owner, id, last)
				} else {
					last = id
				}
			}
			got, err := issues.NextN(t.Context(), "order", 15) // more than a range
			if err != nil || got[0].Lo <= last {
				t.Fatalf("round %d: a batch after %d: %v, %v", round, last, got, err)
			}
			last = got[len(got)-1].Hi - 1
			synctest.Wait() // loads ahead of need have ended
			before := s.count()
			if id, err := refuses.Next(t.Context(), "order"); !errors.Is(err, leaf.ErrNotReady) {
				t.Fatalf("round %d: the node that does not own the tag: %d, %v", round, id, err)
			}
			if synctest.Wait(); s.count() != before {
				t.Errorf("round %d: a node that does not own the tag reserved a range", round)
			}
		}
		if lostBy(a, "order") == 0 {
			t.Error("the ranges of terms that ended are not counted")
		}
	})
}

// The process stands still after it has taken a number, and before it asks for its term: at the
// worst moment, the other node owns the tag and issues.
func TestStrictTakesFirst(t *testing.T) {
	for name, take := range map[string]func(a *segment.Allocator) (int64, error){
		"one": func(a *segment.Allocator) (int64, error) { return a.Next(context.Background(), "order") },
		"a batch": func(a *segment.Allocator) (int64, error) {
			got, err := a.NextN(context.Background(), "order", 25)
			if err != nil {
				return 0, err
			}
			return got[0].Lo, nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			_, o, a, b := pair(t, strictRow(100))
			mine := o.own("a")
			nextOf(t, a)
			var highest int64
			mine.onValid = func() {
				mine.onValid = nil
				o.own("b")
				highest = nextOf(t, b)
				o.own("a")
			}
			id, err := take(a)
			switch {
			case highest == 0:
				t.Fatal("nobody asked for the term after the number was taken")
			case err == nil && id < highest:
				t.Errorf("issued %d after the other node had issued %d", id, highest)
			case err != nil:
				t.Errorf("the node owns the tag again: %v", err)
			}
		})
	}
}

// A range that was asked for in one term is not served in another.
func TestStrictLoadOfAnEarlierTerm(t *testing.T) {
	s, o, a, b := pair(t, strictRow(10))
	o.own("a")
	reserved, goOn := make(chan struct{}), make(chan struct{})
	var once sync.Once
	s.set(func(s *store) {
		s.onReserve = func(_ context.Context, _ segment.Request, do func() (segment.Reservation, error)) (segment.Reservation, error) {
			r, err := do()
			first := false
			once.Do(func() { first = true })
			if first {
				close(reserved)
				<-goOn
			}
			return r, err
		}
	})
	ids := make(chan int64)
	go func() {
		id, err := a.Next(context.Background(), "order")
		if err != nil {
			t.Error(err)
		}
		ids <- id
	}()
	<-reserved
	o.own("b")
	high := nextOf(t, b)
	o.own("a")
	close(goOn)
	if id := <-ids; id < high {
		t.Errorf("issued %d of a range from before the other node issued %d", id, high)
	}
}

// What a node holds of a tag in plain order is not issued when the tag is in strict order, on any way
// by which it learns of the change.
func TestStrictFromPlain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, o, a, b := pair(t, row(10))
		handle := a.Tag("order")
		nextOf(t, a)
		nextOf(t, a)
		synctest.Wait() // a has its next range: the call after this makes all that is left of the first one takable
		if _, err := handle.Next(t.Context()); err != nil {
			t.Fatal(err)
		}
		nextOf(t, b)
		order := func(order string) {
			synctest.Wait() // loads ahead of need have ended: none moves the row between the two steps
			r, err := s.Lookup(t.Context(), "order")
			if err != nil {
				t.Fatal(err)
			}
			r.Options.Order = order
			s.Put(r)
		}
		order(segment.OrderStrict)
		o.own("a")
		for _, n := range []*segment.Allocator{a, b} {
			if err := n.Refresh(t.Context(), "order"); err != nil {
				t.Fatal(err)
			}
		}
		if id, err := b.Next(t.Context(), "order"); err == nil {
			t.Errorf("b issued %d, and a owns the tag", id)
		}
		id, err := handle.Next(t.Context())
		if err != nil || id < s.maxID(t, "order")-10 {
			t.Errorf("a issued %d, %v, below the range that b held", id, err)
		}
		order(segment.OrderPlain)
		o.end()
		for _, n := range []*segment.Allocator{a, b} {
			if err := n.Refresh(t.Context(), "order"); err != nil {
				t.Fatal(err)
			}
			nextOf(t, n)
		}
		if _, err := handle.Next(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

// A node that could not load for its callers, and then loses the tag, ends its alarm: it has nothing to
// load any more, and its callers go to the owner.
func TestStrictAlarmEndsWithTheTerm(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, o, alarms := newStore(strictRow(10)), &terms{}, newAlarms()
		a := node(t, s, nil, segment.Config{NodeID: "a", Terms: o.node("a"), MaxWait: time.Second, Alarms: alarms})
		o.own("a")
		nextOf(t, a)
		s.set(func(s *store) {
			s.onReserve = func(context.Context, segment.Request, func() (segment.Reservation, error)) (segment.Reservation, error) {
				return segment.Reservation{}, errDown
			}
		})
		for err := error(nil); !errors.Is(err, leaf.ErrExhausted); {
			_, err = a.Next(t.Context(), "order")
		}
		alarms.want(t, leaf.AlarmExhausted+" order", leaf.AlarmStore+" default")
		o.own("b")
		s.heal()
		time.Sleep(5 * time.Minute)
		alarms.want(t)
	})
}

func TestStrictWithoutTerms(t *testing.T) {
	a := node(t, newStore(strictRow(10)), nil, segment.Config{})
	if id, err := a.Next(t.Context(), "order"); !errors.Is(err, leaf.ErrNotReady) {
		t.Errorf("%d, %v, want ErrNotReady", id, err)
	}
}

// An order that a later version has set counts as strict. It takes no other option with it.
func TestOrderThatIsNotKnown(t *testing.T) {
	o := &terms{}
	s := newStore(withOptions(10, segment.Options{MinStep: 50, Order: "later"}))
	a := node(t, s, nil, segment.Config{NodeID: "a", Terms: o.node("a")})
	if id, err := a.Next(t.Context(), "order"); !errors.Is(err, leaf.ErrNotReady) {
		t.Errorf("without a term: %d, %v, want ErrNotReady", id, err)
	}
	o.own("a")
	nextOf(t, a)
	if st := a.Snapshot(); len(st) != 1 || st[0].Length != 50 {
		t.Errorf("%+v, want a range of 50", st)
	}
}

// TestOptionsThatWereNeverRead: a node that has never read the options of a tag does not know that it is in strict order,
// and so issues none of it. A node that has read them goes on with what they were.
func TestOptionsThatWereNeverRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, o, a, _ := pair(t, strictRow(10))
		o.own("a")
		nextOf(t, a)
		problem := fmt.Errorf("%w: options: column order_by is NULL", leaf.ErrInvalidRow)
		s.set(func(s *store) {
			s.rows = func([]segment.Row) []segment.Row { return []segment.Row{{Tag: "order", Problem: problem}} }
			s.onLookup = func(context.Context, string) error { return problem }
		})
		time.Sleep(2 * time.Minute)
		late := node(t, s, nil, segment.Config{NodeID: "late", Terms: o.node("late"), MaxWait: time.Second})
		if id, err := late.Next(t.Context(), "order"); err == nil {
			t.Errorf("a node that has not read the options issued %d", id)
		}
		nextOf(t, a)
		s.heal()
		time.Sleep(2 * time.Minute)
		if id, err := late.Next(t.Context(), "order"); !errors.Is(err, leaf.ErrNotReady) {
			t.Errorf("a node that does not own the tag: %d, %v", id, err)
		}
		o.own("late")
		nextOf(t, late)
	})
}
