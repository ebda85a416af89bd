package limit_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/driver/memory"
	"github.com/leaf-idgen/leaf/internal/limit"
	"github.com/leaf-idgen/leaf/internal/test/long"
	"github.com/leaf-idgen/leaf/segment"
	"github.com/leaf-idgen/leaf/segment/fence"
)

// The store of this test hands out one ID per load, 4 loads at once, 10 ms each: 400
// IDs a second are its capacity, and stock can hold two IDs per tag.
const (
	loads    = 4
	loadTime = 10 * time.Millisecond
	capacity = float64(loads) / 0.010
	allTags  = 5_000
	maxWait  = time.Second // of the engine
	patience = 2 * time.Second
)

// slowStore lets every load take its time.
type slowStore struct{ *memory.Store }

func (s slowStore) Reserve(ctx context.Context, req segment.Request) (segment.Reservation, error) {
	time.Sleep(loadTime)
	return s.Store.Reserve(ctx, req)
}

// noDisk forgets everything.
type noDisk struct{}

func (noDisk) Occupy(string) (func(), error) { return func() {}, nil }

func (noDisk) ReadFile(string) ([]byte, error)         { return nil, fs.ErrNotExist }
func (noDisk) Replace(string, []byte) error            { return nil }
func (noDisk) Append(string) (fence.AppendFile, error) { return noFile{}, nil }

type noFile struct{}

func (noFile) Write(p []byte) (int, error) { return len(p), nil }
func (noFile) Sync() error                 { return nil }
func (noFile) Close() error                { return nil }

// startEngine returns segment mode on the slow store. Call it in a bubble.
func startEngine(t *testing.T) *segment.Allocator {
	t.Helper()
	store := memory.New()
	for i := range allTags {
		store.Put(segment.Row{Tag: fmt.Sprint("tag", i), Step: 1})
	}
	router, err := segment.NewRouter([]segment.NamedStore{{Name: "default", Store: slowStore{store}}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	a, err := segment.New(router, noDisk{}, segment.Config{NodeID: "n", MaxWait: maxWait, MaxLoads: loads, FixedStep: true, KeepUnused: true})
	if err != nil {
		t.Fatal(err)
	}
	if err := a.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	return a
}

// outcome is what clients saw in the measured part of a run.
type outcome struct {
	goodput float64         // IDs per second
	p99     time.Duration   // of requests that got one
	waiting int             // at once, at most
	refused int             // throttled
	inVain  int             // waited, and got none
	hints   []time.Duration // when to retry
}

// offer sends requests at a constant rate, whatever becomes of them, and measures after
// warmUp.
func offer(t *testing.T, i leaf.Issuer, rate float64, tags int, warmUp, measured time.Duration) (o outcome) {
	t.Helper()
	const tick = time.Millisecond
	var mu sync.Mutex
	var took []time.Duration
	waiting := 0
	var clients sync.WaitGroup
	working, stop := context.WithCancel(t.Context())
	defer stop()
	begin := time.Now()
	due, sent := 0.0, 0
	for ; time.Since(begin) < warmUp+measured; time.Sleep(tick) {
		for due += rate * tick.Seconds(); due >= 1; due-- {
			tag := fmt.Sprint("tag", sent%tags)
			sent++
			clients.Go(func() {
				ctx, cancel := context.WithTimeout(working, patience)
				defer cancel()
				mu.Lock()
				waiting++
				o.waiting = max(o.waiting, waiting)
				mu.Unlock()
				start := time.Now()
				_, err := i.Next(ctx, tag)
				mu.Lock()
				defer mu.Unlock()
				waiting--
				switch end := time.Since(begin); {
				case end < warmUp || end > warmUp+measured || working.Err() != nil:
				case err == nil:
					took = append(took, time.Since(start))
				case errors.Is(err, leaf.ErrExhausted) && leaf.RetryAfter(err) > 0: // at once
					o.refused++
					o.hints = append(o.hints, leaf.RetryAfter(err))
				default:
					o.inVain++
				}
			})
		}
	}
	stop()
	clients.Wait()
	o.goodput = float64(len(took)) / measured.Seconds()
	if slices.Sort(took); len(took) > 0 {
		o.p99 = took[len(took)*99/100]
	}
	return o
}

// TestOverload: from its peak to 5 times the capacity, goodput falls by 15 % at most,
// the latency of those who are served stays bounded, and so does the number of requests
// in the house.
func TestOverload(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		tags int
		p99  time.Duration
	}{
		{"each request has a tag of its own, and must wait", allTags, maxWait / 2},
		// The loads that refill the stock stand in the queue before the loads of the few
		// requests that wait.
		{"some find IDs in stock", 500, maxWait},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			peak := 0.0
			for _, load := range []float64{0.9, 1.5, 5} {
				o := overload(t, load*capacity, c.tags, func(engine leaf.Issuer) leaf.Issuer {
					g := newGate(t, limit.Config{TargetWait: maxWait / 4}, engine, leaf.Disabled("snowflake"))
					return open(t, g, leaf.Credentials{}).Segment
				})
				peak = max(peak, o.goodput)
				t.Logf("load %.1f: %.0f IDs/s, p99 %v, at most %d waiting, %d refused, %d in vain", load, o.goodput, o.p99, o.waiting, o.refused, o.inVain)
				if load < 1 && o.refused > 0 {
					t.Errorf("load %.1f: %d requests refused, although there is no overload", load, o.refused)
				}
				if o.goodput < 0.85*min(load*capacity, peak) {
					t.Errorf("load %.1f: %.0f IDs/s; want at least 85 %% of the peak of %.0f or of what is asked for", load, o.goodput, peak)
				}
				if o.p99 > c.p99 {
					t.Errorf("load %.1f: p99 %v; want at most %v", load, o.p99, c.p99)
				}
				if most := int(capacity); o.waiting > most { // without a gate: load x maxWait
					t.Errorf("load %.1f: %d requests at once; want at most %d, one second's worth of the capacity", load, o.waiting, most)
				}
				if o.inVain*20 > o.refused+o.inVain {
					t.Errorf("load %.1f: %d requests waited in vain, and %d were told at once; want 1 in 20", load, o.inVain, o.refused)
				}
				for _, h := range o.hints {
					if h < maxWait/8 || h > maxWait/4 {
						t.Fatalf("a refused request is told to retry after %v", h)
					}
				}
			}
		})
	}
}

// TestOverloadWithoutGate: a program that embeds the engine gets as many IDs from it under
// overload. What the gate is for is to tell at once those who would wait in vain, and to
// bound how many wait.
func TestOverloadWithoutGate(t *testing.T) {
	long.Plain(t)
	t.Parallel()
	for _, c := range []struct {
		name string
		tags int
	}{
		{"each request has a tag of its own, and must wait", allTags},
		{"some find IDs in stock", 500},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			peak := 0.0
			for _, load := range []float64{0.9, 1.5, 5} {
				o := overload(t, load*capacity, c.tags, func(engine leaf.Issuer) leaf.Issuer { return engine })
				peak = max(peak, o.goodput)
				t.Logf("load %.1f: %.0f IDs/s, p99 %v, at most %d waiting, %d in vain", load, o.goodput, o.p99, o.waiting, o.inVain)
				if o.goodput < 0.85*min(load*capacity, peak) {
					t.Errorf("load %.1f: %.0f IDs/s; want at least 85 %% of the peak of %.0f or of what is asked for", load, o.goodput, peak)
				}
				if load == 5 && (o.waiting < 2*int(capacity) || o.inVain < 2*int(capacity)) {
					t.Errorf("%d requests at once, %d in vain: the test of the gate proves nothing", o.waiting, o.inVain)
				}
			}
		})
	}
}

// overload offers load to a new engine behind what gate returns.
func overload(t *testing.T, rate float64, tags int, gate func(leaf.Issuer) leaf.Issuer) (o outcome) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		engine := startEngine(t)
		o = offer(t, gate(engine), rate, tags, 1200*time.Millisecond, time.Second)
		if err := engine.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return o
}
