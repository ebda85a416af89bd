package segment_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/segment"
)

// oneAtATime is a store that ends a load when the test says so, and notes the order in
// which they began.
type oneAtATime struct {
	*store
	proceed chan struct{} // one load each
	all     func()        // lets all that follow proceed

	order []string // the tags whose loads began; guarded by store.mu
}

func newOneAtATime(rows ...segment.Row) *oneAtATime {
	s := &oneAtATime{store: newStore(rows...), proceed: make(chan struct{})}
	s.all = sync.OnceFunc(func() { close(s.proceed) })
	s.set(func(st *store) {
		st.onReserve = func(_ context.Context, req segment.Request, do func() (segment.Reservation, error)) (segment.Reservation, error) {
			st.mu.Lock()
			s.order = append(s.order, req.Tag)
			st.mu.Unlock()
			<-s.proceed
			return do()
		}
	})
	return s
}

// newLine returns a node on such a store, with a load under way for a tag named busy, and
// a row of step 10 for order. Call it in a bubble.
func newLine(t *testing.T) (*segment.Allocator, *oneAtATime) {
	t.Helper()
	s := newOneAtATime(segment.Row{Tag: "busy", MaxID: 1, Step: 10}, row(10))
	a := node(t, s, nil, oneLoad)
	t.Cleanup(s.all)
	call(t, a, "busy")
	return a, s
}

var oneLoad = segment.Config{MaxLoads: 1, MaxWait: 10 * time.Second, LoadTimeout: time.Minute, FixedStep: true, SyncInterval: time.Hour}

// one lets the load under way proceed.
func (s *oneAtATime) one(t *testing.T) {
	t.Helper()
	select {
	case s.proceed <- struct{}{}:
	case <-time.After(time.Minute):
		t.Fatal("no load is under way")
	}
}

func (s *oneAtATime) want(t *testing.T, order string) {
	t.Helper()
	synctest.Wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	if got := strings.Join(s.order, " "); got != order {
		t.Errorf("loads began in the order %q, want %q", got, order)
	}
}

// outcome is what became of a call.
type outcome struct {
	id  int64
	err error
}

// call begins a call for an ID, and returns when it waits or has ended.
func call(t *testing.T, a leaf.Issuer, tag string) (leave context.CancelFunc, done <-chan outcome) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan outcome, 1)
	go func() {
		id, err := a.Next(ctx, tag)
		ended <- outcome{id, err}
	}()
	synctest.Wait()
	return func() { cancel(); synctest.Wait() }, ended
}

// wantServed wants the call to have ended with the tag's first ID.
func wantServed(t *testing.T, done <-chan outcome) {
	t.Helper()
	synctest.Wait()
	select {
	case got := <-done:
		if got.err != nil || got.id != 1 {
			t.Errorf("ID %d, error %v; want 1", got.id, got.err)
		}
	default:
		t.Error("the call still waits")
	}
}

// TestLoadNobodyWaitsFor: callers that left before their load began cost the store
// nothing, and who comes later is served as if they had never been there.
func TestLoadNobodyWaitsFor(t *testing.T) {
	for _, c := range []struct {
		name string
		ends func(t *testing.T, leave context.CancelFunc)
	}{
		{"cancelled", func(_ *testing.T, leave context.CancelFunc) { leave() }},
		{"too late", func(*testing.T, context.CancelFunc) { time.Sleep(10 * time.Second) }},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				a, s := newLine(t)
				first, firstDone := call(t, a, "order")
				second, secondDone := call(t, a, "order")
				c.ends(t, first)
				c.ends(t, second)
				wantErr(t, (<-firstDone).err, leaf.ErrNotReady)
				wantErr(t, (<-secondDone).err, leaf.ErrNotReady)
				for _, st := range a.Snapshot() {
					if st.Tag == "order" && st.Loading {
						t.Errorf("%+v: loading, for nobody", st)
					}
				}
				s.one(t)
				s.want(t, "busy")
				_, got := call(t, a, "order")
				s.want(t, "busy order")
				s.all()
				wantServed(t, got)
			})
		})
	}
}

// TestLoadNobodyWaitedForIsForgotten: the length of the next range follows from when it
// was asked for in earnest.
func TestLoadNobodyWaitedForIsForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newOneAtATime(segment.Row{Tag: "busy", MaxID: 1, Step: 10}, row(1))
		cfg := oneLoad
		cfg.FixedStep = false
		a := node(t, s, nil, cfg)
		t.Cleanup(s.all)
		for range 2 {
			_, done := call(t, a, "order")
			s.one(t)
			wantErr(t, (<-done).err, nil)
		}
		call(t, a, "busy")
		time.Sleep(time.Second)
		leave, _ := call(t, a, "order")
		leave()
		s.all()
		time.Sleep(time.Hour)
		next(t, a, "order")
		for _, st := range a.Snapshot() {
			if st.Tag == "order" && st.Length != 1 {
				t.Errorf("a range of %d after one that lasted an hour, want 1", st.Length)
			}
		}
	})
}

// TestOthersStillWait: whoever waits gets his load, wherever those who leave stood.
func TestOthersStillWait(t *testing.T) {
	for leaver := range 3 {
		t.Run(fmt.Sprint(leaver), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				a, s := newLine(t)
				var leave [3]context.CancelFunc
				var done [3]<-chan outcome
				for i := range done {
					leave[i], done[i] = call(t, a, "order")
				}
				for i := range leave {
					if i != leaver {
						leave[i]()
					}
				}
				s.all()
				wantServed(t, done[leaver])
			})
		})
	}
}

// TestWhoComesAfterTheLast: the load of the last waiter is gone when the next one
// arrives, before its turn would have come.
func TestWhoComesAfterTheLast(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, s := newLine(t)
		for range 3 {
			leave, done := call(t, a, "order")
			leave()
			wantErr(t, (<-done).err, context.Canceled)
		}
		_, done := call(t, a, "order")
		s.all()
		wantServed(t, done)
		s.want(t, "busy order")
	})
}

// TestLoadThatHasBegun goes on without its callers, and its range is kept.
func TestLoadThatHasBegun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newOneAtATime(row(10))
		cfg := oneLoad
		cfg.MaxLoads = 2 // a second load of the tag would begin at once
		a := node(t, s, nil, cfg)
		t.Cleanup(s.all)
		leave, done := call(t, a, "order")
		s.want(t, "order")
		leave()
		wantErr(t, (<-done).err, context.Canceled)
		_, waits := call(t, a, "order") // joins the load under way
		s.want(t, "order")
		s.all()
		wantServed(t, waits)
		if id := next(t, a, "order"); id != 2 {
			t.Errorf("ID = %d, want 2", id)
		}
		synctest.Wait()
		if st := a.Status(); st.Loads != 2 || st.Lost != 0 { // with the refill
			t.Errorf("%d loads, %d numbers lost; want 2 and 0", st.Loads, st.Lost)
		}
	})
}

// TestLoadThatHasBegunForNobody: its range is there for who comes next.
func TestLoadThatHasBegunForNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, s := newLine(t)
		leave, _ := call(t, a, "order")
		s.one(t)
		s.want(t, "busy order")
		leave()
		s.one(t)
		synctest.Wait()
		_, done := call(t, a, "order")
		wantServed(t, done)
		s.all()
	})
}

// TestRefillStays: a load ahead of need is nobody's in particular.
func TestRefillStays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, s := newLine(t)
		_, done := call(t, a, "order")
		s.one(t)
		s.one(t)
		wantServed(t, done)
		call(t, a, "busy") // the second of its IDs: a tenth is used
		s.want(t, "busy order busy")
		increasing(t, drain(t, a, "order", 9)) // the refill stands behind that of busy
		leave, gone := call(t, a, "order")
		leave()
		wantErr(t, (<-gone).err, leaf.ErrExhausted)
		s.one(t)
		s.want(t, "busy order busy order")
		s.all()
		synctest.Wait()
		if id := next(t, a, "order"); id != 11 {
			t.Errorf("ID = %d, want 11", id)
		}
	})
}

// TestPreloadStays: so is the load of a tag that was used before the restart, whether a
// caller asks for it before the node thinks of it or after that.
func TestPreloadStays(t *testing.T) {
	for _, first := range []bool{true, false} {
		t.Run(fmt.Sprint("caller first=", first), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d := newDisk()
				s := newOneAtATime(row(10), segment.Row{Tag: "busy", MaxID: 1, Step: 10})
				before := node(t, s.Store, d, segment.Config{})
				next(t, before, "order")
				closeNode(t, before)

				synced := make(chan struct{})
				s.set(func(s *store) { s.onRows = func(context.Context) error { <-synced; return nil } })
				a := newNode(t, s, d, oneLoad)
				t.Cleanup(s.all)
				started := make(chan error, 1)
				go func() { started <- a.Start(t.Context()) }()
				synctest.Wait()
				call(t, a, "busy")
				if !first {
					close(synced)
				}
				leave, done := call(t, a, "order")
				if first {
					close(synced)
				}
				wantErr(t, <-started, nil)
				leave()
				wantErr(t, (<-done).err, context.Canceled)
				s.all()
				s.want(t, "busy order")
				if id := next(t, a, "order"); id != 2 {
					t.Errorf("ID = %d, want 2", id)
				}
			})
		})
	}
}

// TestNewestFirst: the order of service, of loads and of look-ups.
func TestNewestFirst(t *testing.T) {
	tags := []string{"a", "b", "c", "d"}
	for _, c := range []struct {
		name  string
		leave string   // whose caller leaves
		again []string // what is asked for again after that
		order string
	}{
		{"first come, first served", "", nil, "a b c d"},
		{"a caller in the middle leaves", "b", nil, "a c d"},
		{"and others come", "b", []string{"a", "c", "b"}, "a c d b"},
		{"the oldest leaves", "a", nil, "d c b"},
		{"and others come", "a", []string{"b", "c"}, "c b d"},
		{"and comes again", "a", []string{"a"}, "a d c b"},
	} {
		for _, known := range []bool{true, false} {
			t.Run(fmt.Sprint(c.name, ", known=", known), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					a, s := newLine(t)
					for _, tag := range tags {
						s.Put(segment.Row{Tag: tag, MaxID: 1, Step: 100})
						if known {
							if err := a.Refresh(t.Context(), tag); err != nil {
								t.Fatal(err)
							}
						}
					}
					leave := map[string]context.CancelFunc{}
					for _, tag := range tags {
						leave[tag], _ = call(t, a, tag)
					}
					if c.leave != "" {
						leave[c.leave]()
					}
					for _, tag := range c.again {
						call(t, a, tag)
					}
					s.all()
					s.want(t, "busy "+c.order)
				})
			})
		}
	}
}

// TestOldestFirstAgain: once the line was empty, the order is what it was.
func TestOldestFirstAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, s := newLine(t)
		leave, _ := call(t, a, "unknown") // in the line of look-ups, as those that follow
		leave()
		for _, tag := range []string{"a", "b"} {
			create(t, s.store, tag, 1)
			call(t, a, tag)
		}
		s.all()
		s.want(t, "busy a b")
	})
}

// TestLookUpsNobodyWaitsFor: callers that leave make room for others in the waiting
// room at once, and the store is not asked about their names.
func TestLookUpsNobodyWaitsFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, s := newLine(t)
		lookups := 0
		s.set(func(s *store) { s.onLookup = func(context.Context, string) error { lookups++; return nil } })
		for i := range 5000 { // more than may wait at once
			ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
			_, err := a.Next(ctx, fmt.Sprint("unknown-", i))
			cancel()
			wantErr(t, err, context.DeadlineExceeded)
		}
		s.all()
		synctest.Wait()
		if lookups != 0 {
			t.Errorf("%d look-ups for callers that had left", lookups)
		}
	})
}

// TestCloseWithALine: loads in the line end with Close, and their callers are told at
// once, unless they left before.
func TestCloseWithALine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, s := newLine(t)
		_, stays := call(t, a, "order")
		leave, leaves := call(t, a, "unknown")
		start := time.Now()
		ended := make(chan struct{})
		go func() { closeNode(t, a); close(ended) }()
		leave()
		wantErr(t, (<-leaves).err, leaf.ErrNotReady)
		wantErr(t, (<-stays).err, leaf.ErrNotReady)
		if d := time.Since(start); d > 0 {
			t.Errorf("a call was told after %v that the node shuts down", d)
		}
		s.all()
		<-ended
		s.want(t, "busy")
	})
}

// TestManyLeave: callers that leave at any moment, on real threads, repeat nothing, and
// leave no tag behind that is not served.
func TestManyLeave(t *testing.T) {
	const tags, callers, calls = 4, 16, 300
	s := newStore()
	for i := range tags {
		s.Put(segment.Row{Tag: fmt.Sprint(i), MaxID: 1, Step: 1})
	}
	a := node(t, s, nil, segment.Config{MaxLoads: 2, FixedStep: true})
	var ids [tags]*ledger
	for i := range ids {
		ids[i] = newLedger()
	}
	var all sync.WaitGroup
	for c := range callers {
		all.Go(func() {
			for i := range calls {
				ctx, cancel := context.WithCancel(t.Context())
				go cancel()
				tag := (i + c) % tags
				if id, err := a.Next(ctx, fmt.Sprint(tag)); err == nil {
					ids[tag].add(t, "caller", id)
				}
				cancel()
			}
		})
	}
	all.Wait()
	for i := range ids {
		ids[i].add(t, "after", next(t, a, fmt.Sprint(i)))
		t.Logf("tag %d: %d IDs", i, ids[i].len())
	}
}
