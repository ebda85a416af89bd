package limit_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/internal/limit"
)

// waits is an engine in which a request waits until its tag's gate opens.
type waits struct {
	mu    sync.Mutex
	gates map[string]chan struct{} // no gate: in stock
	taken int
}

func (w *waits) Next(ctx context.Context, tag string) (int64, error) {
	_, err := w.NextN(ctx, tag, 1)
	return 0, err
}

// NextN takes a first part at once, as a batch does that finds the rest of a range.
func (w *waits) NextN(ctx context.Context, tag string, n int) ([]leaf.Range, error) {
	w.mu.Lock()
	gate := w.gates[tag]
	w.taken += n / 2
	w.mu.Unlock()
	if gate != nil {
		if err := leaf.Admit(ctx); err != nil {
			return nil, err
		}
		if err := leaf.SystemRuntime().Wait(ctx, gate, 0); err != nil {
			return nil, errors.Join(leaf.ErrNotReady, err)
		}
	}
	return []leaf.Range{{Lo: 0, Hi: int64(n)}}, nil
}

func (w *waits) close(tag string) (open func()) {
	gate := make(chan struct{})
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.gates == nil {
		w.gates = map[string]chan struct{}{}
	}
	w.gates[tag] = gate
	return func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		delete(w.gates, tag)
		close(gate)
	}
}

// many sends n requests and returns what became of them, once all are answered or wait.
func many(t *testing.T, i leaf.Issuer, tag string, n int) (results chan error) {
	t.Helper()
	results = make(chan error, n)
	for range n {
		go func() {
			_, err := i.Next(t.Context(), tag)
			results <- err
		}()
	}
	synctest.Wait()
	return results
}

// TestWaitingIsBounded, half of it for each tag, and IDs in stock need none.
func TestWaitingIsBounded(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T) {
		w, s := new(waits), new(waits)
		g := newGate(t, limit.Config{MaxWaiting: 100}, w, s)
		i := open(t, g, leaf.Credentials{})
		openA, openB, openC, open1, open2 := w.close("a"), w.close("b"), w.close("c"), s.close("key 1"), s.close("key 2")
		a := many(t, i.Segment, "a", 80)
		if len(a) != 30 {
			t.Errorf("%d of 80 requests for one tag were rejected, want 30", len(a))
		}
		b := many(t, i.Segment, "b", 40)
		c := many(t, i.Segment, "c", 40)
		if len(b) != 0 || len(c) != 30 {
			t.Errorf("%d and %d of 40 requests each for other tags were rejected, want 0 and 30", len(b), len(c))
		}
		for _, tag := range []string{"in stock", "in stock, too"} {
			if _, err := i.Segment.Next(t.Context(), tag); err != nil {
				t.Errorf("an ID that is in stock, while all slots are held: %v", err)
			}
			if _, err := i.Segment.NextN(t.Context(), tag, 1000); err != nil {
				t.Errorf("a batch that is in stock, while all slots are held: %v", err)
			}
		}
		one, two := many(t, i.Snowflake, "key 1", 60), many(t, i.Snowflake, "key 2", 60)
		if len(one) != 0 || len(two) != 20 {
			t.Errorf("%d and %d of 60 requests each in snowflake mode, which has a limit of its own, were rejected; want 0 and 20", len(one), len(two))
		}
		if st := g.Status().Segment; st.Waiting != 100 || st.Rejected != 60 || st.Limit != 100 || st.Most != 100 {
			t.Errorf("Status().Segment = %+v; want 100 waiting, 60 rejected", st)
		}
		openA()
		openB()
		openC()
		open1()
		open2()
		synctest.Wait()
		rejected := 0
		for _, results := range []chan error{a, b, c, one, two} {
			for len(results) > 0 {
				switch err := <-results; {
				case errors.Is(err, leaf.ErrExhausted) && !errors.Is(err, context.Canceled) && leaf.RetryAfter(err) > 0:
					rejected++
				case err != nil:
					t.Fatalf("%v; want ErrExhausted with a hint or none", err)
				}
			}
		}
		if st := g.Status(); rejected != 80 || st.Segment.Waiting != 0 || st.Snowflake.Waiting != 0 {
			t.Errorf("%d rejected, then %+v", rejected, st)
		}
	})
}

// TestDatabasesWaitApart: a database that does not answer takes no slot from the tags of the others, nor from what any
// of several may serve: tags that are in several, and sequences.
func TestDatabasesWaitApart(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T) {
		w := new(waits)
		of := func(tag string) int { return map[byte]int{'a': 0, 'b': 1, 'm': -1}[tag[0]] }
		g, err := limit.New(leaf.Issuers{Segment: w, Snowflake: w, Sequence: &counted{}}, limit.Config{MaxWaiting: 20, Databases: 2, DatabaseOf: of})
		if err != nil {
			t.Fatal(err)
		}
		issuers := open(t, g, leaf.Credentials{})
		i := issuers.Segment
		var rejected []chan error
		for _, tag := range []string{"a1", "a2", "a3", "b1", "b2", "m1"} {
			t.Cleanup(w.close(tag))
			rejected = append(rejected, many(t, i, tag, 10))
		}
		for n, want := range []int{0, 0, 10, 0, 0, 0} {
			if got := len(rejected[n]); got != want {
				t.Errorf("tag %d: %d of 10 requests were rejected, want %d", n, got, want)
			}
		}
		for tag, want := range map[string]error{"a1": leaf.ErrExhausted, "b3": nil} {
			if _, err := i.NextN(t.Context(), tag, 5); !errors.Is(err, want) {
				t.Errorf("a batch for %s: %v, want %v", tag, err, want)
			}
		}
		if _, err := issuers.Sequence.NextEach(t.Context(), "a1", []leaf.SequenceRequest{{Entity: "1", Count: 1}}); err != nil {
			t.Errorf("a sequence: %v", err)
		}
		if st := g.Status().Segment; st.Waiting != 50 || st.Limit != 20 || st.Rejected != 11 {
			t.Errorf("%+v, want 50 waiting, a limit of 20, and 11 rejected", st)
		}
		g.SetWaiting(time.Second, 30)
		for _, tag := range []string{"a4", "b4", "m4"} {
			t.Cleanup(w.close(tag))
			if got := len(many(t, i, tag, 5)); got != 0 {
				t.Errorf("%d requests for %s were rejected below the new bound", got, tag)
			}
		}
	})
}

// TestWaitingIsSetAnew: other bounds count for the next request, and those that wait go on.
func TestWaitingIsSetAnew(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T) {
		s := new(waits)
		g := newGate(t, limit.Config{MaxWaiting: 100}, new(waits), s)
		i := open(t, g, leaf.Credentials{})
		release := s.close("key")
		first := many(t, i.Snowflake, "key", 60)
		g.SetWaiting(time.Second, 20)
		second := many(t, i.Snowflake, "key", 5)
		g.SetWaiting(time.Second, 62)
		third := many(t, i.Snowflake, "key", 5)
		if len(first) != 0 || len(second) != 5 || len(third) != 3 {
			t.Errorf("rejected: %d of 60, %d of 5 above the new bound, and %d of 5 with two slots left", len(first), len(second), len(third))
		}
		release()
		synctest.Wait()
		for range 60 {
			if err := <-first; err != nil {
				t.Fatal(err)
			}
		}
	})
}

// TestBatchIsRejectedBeforeItBegins: one that is rejected in the middle would lose
// what it took from those who wait.
func TestBatchIsRejectedBeforeItBegins(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T) {
		w := new(waits)
		g := newGate(t, limit.Config{MaxWaiting: 10}, w, w)
		g.Set(tags("a", limit.Rule{Quota: 1000}))
		i := open(t, g, leaf.Credentials{}).Segment
		opens := w.close("a")
		many(t, i, "a", 5)
		for range 10 {
			if _, err := i.NextN(t.Context(), "a", 995); !errors.Is(err, leaf.ErrExhausted) {
				t.Errorf("NextN: %v; want ErrExhausted", err)
			}
		}
		if w.taken != 0 {
			t.Errorf("%d IDs were taken by batches that were rejected", w.taken)
		}
		if got := g.Status().Segment.Rejected; got != 10 {
			t.Errorf("Rejected = %d, want 10", got)
		}
		opens()
		synctest.Wait()
		if _, err := i.NextN(t.Context(), "a", 995); err != nil {
			t.Errorf("later, under a quota of which refused batches took nothing: %v", err)
		}
	})
}

// TestPauseIsWaitedOut: a store that says nothing for a while and then serves everybody is
// no overload.
func TestPauseIsWaitedOut(t *testing.T) {
	t.Parallel()
	for _, pause := range []time.Duration{50 * time.Millisecond, 500 * time.Millisecond, 900 * time.Millisecond} {
		bubble(t, func(t *testing.T) {
			w := new(waits)
			g := newGate(t, limit.Config{}, w, w)
			i := open(t, g, leaf.Credentials{}).Segment
			for range 3 {
				opens := w.close("a")
				for range 100 {
					if got := many(t, i, "a", 20); len(got) != 0 {
						t.Fatalf("a pause of %v: a request was rejected: %v", pause, <-got)
					}
					time.Sleep(pause / 100)
				}
				opens()
				synctest.Wait()
				time.Sleep(pause)
			}
			if st := g.Status().Segment; st.Rejected != 0 || st.Most != 2000 {
				t.Errorf("after pauses of %v: %+v", pause, st)
			}
		})
	}
}

// outage returns a gate in front of an engine in which requests wait in vain for 1005 ms, until the store is back.
func outage(t *testing.T) (g *limit.Gate, back *atomic.Bool) {
	t.Helper()
	back = new(atomic.Bool)
	return newGate(t, limit.Config{}, issuerFunc(func(ctx context.Context) error {
		if err := leaf.Admit(ctx); err != nil {
			return err
		}
		if back.Load() {
			return leaf.SystemRuntime().Wait(ctx, nil, 25*time.Millisecond)
		}
		ctx, cancel := context.WithTimeout(ctx, 1005*time.Millisecond)
		defer cancel()
		<-ctx.Done()
		return leaf.ErrNotReady
	}), leaf.Disabled("snowflake")), back
}

// TestOutageFailsFast: while requests wait in vain, most are told at once; when the store
// is back, the limit grows again within two seconds. Requests arrive every 10 ms and never
// leave at such a moment: how many wait would depend on who runs first.
func TestOutageFailsFast(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T) {
		g, back := outage(t)
		i := open(t, g, leaf.Credentials{}).Segment
		load := func(d time.Duration) (waited, told int) {
			for begin := time.Now(); time.Since(begin) < d; time.Sleep(10 * time.Millisecond) {
				got := len(many(t, i, "a", 50))
				waited, told = waited+50-got, told+got
			}
			return waited, told
		}
		if waited, _ := load(time.Second); waited < 4900 {
			t.Errorf("%d requests waited in the first second of the outage; want all, up to half of the limit", waited)
		}
		load(time.Second)
		if waited, told := load(2 * time.Second); waited > 50 || told < 9000 {
			t.Errorf("later in the outage %d requests waited and %d were told at once; want nearly all to be told", waited, told)
		}
		if got := g.Status().Segment.Limit; got != 16 {
			t.Errorf("the limit is %d, want the smallest", got)
		}
		back.Store(true)
		load(2 * time.Second)
		if waited, told := load(time.Second); told != 0 || waited != 5000 {
			t.Errorf("two seconds after the outage %d requests waited and %d were told; want all to be served", waited, told)
		}
		time.Sleep(time.Second)
	})
}

// TestOverloadIsForgotten: after an overload, a burst that comes when all has been calm for a while is no overload,
// although no request was rejected meanwhile, by which the limit would have grown.
func TestOverloadIsForgotten(t *testing.T) {
	t.Parallel()
	for name, calm := range map[string]func(i leaf.Issuer){
		"nothing is asked": func(leaf.Issuer) { time.Sleep(10 * time.Second) },
		"little is asked": func(i leaf.Issuer) {
			for begin := time.Now(); time.Since(begin) < 10*time.Second; time.Sleep(100 * time.Millisecond) {
				_, _ = i.Next(context.Background(), "b")
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bubble(t, func(t *testing.T) {
				g, back := outage(t)
				i := open(t, g, leaf.Credentials{}).Segment
				for range 5 {
					many(t, i, "a", 100)
					time.Sleep(1010 * time.Millisecond) // until they have waited in vain
				}
				if got := g.Status().Segment.Limit; got != 16 {
					t.Fatalf("the limit in the outage is %d, want the smallest", got)
				}
				back.Store(true)
				calm(i)
				burst := many(t, i, "a", 100)
				for range 100 {
					if err := <-burst; err != nil {
						t.Fatalf("of a burst after 10 s without trouble: %v", err)
					}
				}
			})
		})
	}
}

// issuerFunc is an engine in which each request waits for f.
type issuerFunc func(ctx context.Context) error

func (f issuerFunc) Next(ctx context.Context, _ string) (int64, error) { return 0, f(ctx) }

func (f issuerFunc) NextN(ctx context.Context, _ string, _ int) ([]leaf.Range, error) {
	return nil, f(ctx)
}
