package masters_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/internal/masters"
	"github.com/leaf-idgen/leaf/segment"
)

// engine is an Engine whose parts a test sets. A part without a stock waits until its context ends, or refuses.
type engine struct {
	mu    sync.Mutex
	parts map[string]*part
	asked []string // parts whose calls waited, and "?" with the name for Stocked
}

type part struct {
	next, stock int64
	refuses     error
}

func (e *engine) NextN(ctx context.Context, name string, n int) ([]leaf.Range, error) {
	e.mu.Lock()
	p := e.parts[name]
	if p != nil && p.stock >= int64(n) {
		defer e.mu.Unlock()
		p.stock -= int64(n)
		p.next += int64(n)
		return []leaf.Range{{Lo: p.next - int64(n), Hi: p.next}}, nil
	}
	err := leaf.ErrUnknownTag
	if p != nil {
		err = p.refuses
	}
	e.mu.Unlock()
	if admit := leaf.Admit(ctx); admit != nil {
		return nil, admit
	}
	e.mu.Lock()
	e.asked = append(e.asked, name)
	if len(e.asked) > 1000 {
		panic("a call spins")
	}
	e.mu.Unlock()
	if err != nil {
		return nil, fmt.Errorf("%w: %s", err, name)
	}
	<-ctx.Done()
	return nil, fmt.Errorf("%w: %w", leaf.ErrExhausted, ctx.Err())
}

func (e *engine) Next(ctx context.Context, name string) (int64, error) {
	r, err := e.NextN(ctx, name, 1)
	if err != nil {
		return 0, err
	}
	return r[0].Lo, nil
}

func (e *engine) Stocked(name string) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.asked = append(e.asked, "?"+name)
	return e.parts[name] != nil && e.parts[name].stock > 0
}

func (e *engine) set(name string, stock int64, refuses error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.parts[name].stock, e.parts[name].refuses = stock, refuses
}

// asks returns what was asked since the last call.
func (e *engine) asks() []string {
	e.mu.Lock()
	defer e.mu.Unlock()
	all := e.asked
	e.asked = nil
	return all
}

const west, east = "orders~1of2~1000", "orders~2of2~1000"

// newIssuer returns an Issuer for which east is near, on an engine with 100 IDs of each part.
func newIssuer(t *testing.T) (*masters.Issuer, *engine) {
	t.Helper()
	rule, err := segment.ParseTagRule("orders*=west,east*1000")
	if err != nil {
		t.Fatal(err)
	}
	router, err := segment.NewRouter([]segment.NamedStore{{Name: "west"}, {Name: "east"}}, []segment.TagRule{rule})
	if err != nil {
		t.Fatal(err)
	}
	e := &engine{parts: map[string]*part{west: {next: 1, stock: 100}, east: {next: 1, stock: 100}, "pay": {next: 7, stock: 100}}}
	x, err := masters.New(e, router, masters.Config{Near: []string{"east"}})
	if err != nil {
		t.Fatal(err)
	}
	return x, e
}

// next calls Next, and returns how long it took.
func next(t *testing.T, x *masters.Issuer, want int64) time.Duration {
	t.Helper()
	began := time.Now()
	got, err := x.Next(t.Context(), "orders")
	if err != nil || got != want {
		t.Errorf("Next is %d, %v; want %d", got, err, want)
	}
	return time.Since(began)
}

// TestNearestThatAnswers is the way of a call while the nearest database answers, fails, and comes back.
func TestNearestThatAnswers(t *testing.T) {
	for name, refuses := range map[string]error{"does not answer": nil, "is latched": leaf.ErrRegress, "has lost the row": leaf.ErrUnknownTag, "is used up": leaf.ErrOverflow} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				x, e := newIssuer(t)
				if took := next(t, x, 1001); took != 0 || e.asks() != nil {
					t.Errorf("an ID of the nearest database took %v", took)
				}
				e.set(east, 0, refuses)
				patience := 100 * time.Millisecond
				if refuses != nil {
					patience = 0
				}
				if took := next(t, x, 1); took != patience {
					t.Errorf("the first call of an outage took %v, want %v", took, patience)
				}
				e.asks()
				if took := next(t, x, 2); took != 0 {
					t.Errorf("a later call took %v, want no time", took)
				}
				if diff := cmp.Diff([]string{"?" + east}, e.asks()); diff != "" {
					t.Errorf("a later call asked (-want +got):\n%s", diff)
				}
				e.set(east, 10, nil)
				next(t, x, 1002)
				if got := next(t, x, 1003); got != 0 || len(e.asks()) != 1 {
					t.Error("the second call after the outage asked whether there are IDs")
				}
			})
		})
	}
}

// TestNearestIsWaitedFor: a part that has just nothing in memory is waited for, although another one has IDs.
func TestNearestIsWaitedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x, e := newIssuer(t)
		e.set(east, 0, nil)
		if _, err := x.Next(deadline(t, 10*time.Millisecond), "orders"); err != nil { // patience is 5 ms: a share of what is left
			t.Error(err)
		}
		e.set(west, 0, nil)
		if _, err := x.Next(deadline(t, 0), "orders"); !errors.Is(err, leaf.ErrExhausted) {
			t.Errorf("a call without time: %v", err)
		}
		if diff := cmp.Diff([]string{east, "?" + east}, e.asks()[:2]); diff != "" {
			t.Errorf("asked (-want +got):\n%s", diff)
		}
	})
}

func deadline(t *testing.T, d time.Duration) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), d)
	t.Cleanup(cancel)
	return ctx
}

// TestCallerThatLeaves: a caller whose time is over, or who may not wait, says nothing of the database.
func TestCallerThatLeaves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x, e := newIssuer(t)
		e.set(east, 0, nil)
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Millisecond, cancel)
		if _, err := x.Next(ctx, "orders"); !errors.Is(err, leaf.ErrExhausted) {
			t.Errorf("a caller that left: %v", err)
		}
		refused := context.WithValue(t.Context(), leaf.AdmissionKey{}, leaf.Admission(full{}))
		if _, err := x.Next(refused, "orders"); !errors.Is(err, leaf.ErrThrottled) {
			t.Errorf("a caller that may not wait: %v", err)
		}
		if diff := cmp.Diff([]string{east}, e.asks()); diff != "" {
			t.Errorf("asked (-want +got):\n%s", diff)
		}
		e.set(east, 1, nil)
		next(t, x, 1001)
		if e.asks() != nil {
			t.Error("the nearest database was avoided")
		}
	})
}

type full struct{}

func (full) Admit() error { return leaf.ErrThrottled }

// TestAllAreGone: a call waits for all parts in turn, and takes from the first that answers. Without any it ends at its
// deadline, or at once if none lets it wait.
func TestAllAreGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x, e := newIssuer(t)
		e.set(east, 0, nil)
		e.set(west, 0, nil)
		began := time.Now()
		_, err := x.Next(t.Context(), "orders")
		if took := time.Since(began); !errors.Is(err, leaf.ErrExhausted) || took != time.Second {
			t.Errorf("without a database, after %v: %v; want ErrExhausted after 1s", took, err)
		}
		if n := len(e.asks()); n < 10 || n > 20 {
			t.Errorf("the call asked %d times in a second", n)
		}
		time.AfterFunc(450*time.Millisecond, func() { e.set(west, 5, nil) })
		if took := next(t, x, 1); took < 450*time.Millisecond || took > 700*time.Millisecond {
			t.Errorf("the call that one database has come back for took %v", took)
		}
		e.set(west, 0, leaf.ErrRegress)
		e.set(east, 0, leaf.ErrUnknownTag)
		began = time.Now()
		if _, err = x.Next(t.Context(), "orders"); !errors.Is(err, leaf.ErrRegress) || time.Since(began) != 0 {
			t.Errorf("latched and unknown, after %v: %v; want ErrRegress at once", time.Since(began), err)
		}
		e.set(west, 0, leaf.ErrUnknownTag)
		if _, err = x.Next(t.Context(), "orders"); !errors.Is(err, leaf.ErrUnknownTag) || err.Error() != leaf.ErrUnknownTag.Error()+`: "orders"` {
			t.Errorf("unknown in all databases: %v", err)
		}
		e.set(west, 0, leaf.ErrNotReady)
		if _, err = x.NextN(t.Context(), "orders", 3); !errors.Is(err, leaf.ErrNotReady) {
			t.Errorf("unknown and not ready: %v; want ErrNotReady, with which a retry helps", err)
		}
	})
}

// TestBatches: a batch has the IDs of its numbers, one range for each block.
func TestBatches(t *testing.T) {
	x, e := newIssuer(t)
	e.set(east, 2500, nil)
	got, err := x.NextN(t.Context(), "orders", 2100)
	want := []leaf.Range{{Lo: 1001, Hi: 2000}, {Lo: 3000, Hi: 4000}, {Lo: 5000, Hi: 5101}}
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("2100 IDs, %v (-want +got):\n%s", err, diff)
	}
	for _, n := range []int{0, -1, leaf.MaxBatch + 1} {
		if _, err := x.NextN(t.Context(), "orders", n); !errors.Is(err, leaf.ErrBadRequest) {
			t.Errorf("a batch of %d: %v", n, err)
		}
	}
}

// TestNumbersAreUsedUp: when a part has numbers without IDs, another part serves.
func TestNumbersAreUsedUp(t *testing.T) {
	x, e := newIssuer(t)
	e.parts[east].next = segment.MaxMaxID / 2
	next(t, x, 1)
	got, err := x.NextN(t.Context(), "orders", 2)
	if diff := cmp.Diff([]leaf.Range{{Lo: 2, Hi: 4}}, got); err != nil || diff != "" {
		t.Errorf("2 IDs, %v (-want +got):\n%s", err, diff)
	}
}

// TestOtherTags: a tag in one database is the engine's, and the rows of a tag in several are no tags.
func TestOtherTags(t *testing.T) {
	x, _ := newIssuer(t)
	if id, err := x.Next(t.Context(), "pay"); id != 7 || err != nil {
		t.Errorf("Next of a tag in one database is %d, %v", id, err)
	}
	if r, err := x.NextN(t.Context(), "pay", 2); err != nil || r[0].Lo != 8 {
		t.Errorf("NextN of a tag in one database is %v, %v", r, err)
	}
	if id, err := x.Next(t.Context(), east); !errors.Is(err, leaf.ErrUnknownTag) {
		t.Errorf("a row of orders gave %d, %v; want ErrUnknownTag", id, err)
	}
	if r, err := x.NextN(t.Context(), west, 2); !errors.Is(err, leaf.ErrUnknownTag) {
		t.Errorf("a row of orders gave %v, %v; want ErrUnknownTag", r, err)
	}
}

func TestConfigRefuses(t *testing.T) {
	router, err := segment.NewRouter([]segment.NamedStore{{Name: "west"}, {Name: "east"}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []masters.Config{{Near: []string{"north"}}, {Near: []string{"east", "east"}}, {MaxWait: -1}, {Patience: -1}} {
		if _, err := masters.New(&engine{}, router, c); !errors.Is(err, leaf.ErrBadRequest) {
			t.Errorf("%+v: %v; want ErrBadRequest", c, err)
		}
	}
}
