package drivertest

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/segment"
)

// Wire is the network between a store and its server, for a test to break.
type Wire interface {
	// Cut resets a connection when the server answers to the first piece that holds
	// text: the server did as it was told, and the client does not know. Other
	// connections and later pieces pass. sent returns how many pieces with the text
	// clients have sent since.
	Cut(text string) (sent func() int)

	// CutBefore resets a connection instead of forwarding the first piece that
	// holds text: the server never hears of it.
	CutBefore(text string) (sent func() int)

	// CutIdle resets all open connections.
	CutIdle()

	// Freeze lets nothing pass in either direction; connections stay open.
	Freeze()

	// Heal ends Cut and Freeze.
	Heal()
}

// Faulty is a backend behind a wire.
type Faulty struct {
	Backend // Store goes through Wire; Put, Lock and Other do not

	Wire Wire

	// Texts that only one kind of statement each has: the one by which Reserve takes
	// a range in one round trip; and those of a transaction, as that of ReturnUnused.
	Alone                string
	Begin, Write, Commit string

	// AlwaysAlone says that Reserve needs no transaction even where it does not know
	// the step.
	AlwaysAlone bool

	// RefuseCommits makes the database refuse a change of leaf_alloc until allow is
	// called, at the commit if it can.
	RefuseCommits func(t *testing.T) (allow func())
}

// NewFaulty returns a backend on an empty database. It is called once per case.
type NewFaulty func(t *testing.T) Faulty

// RunFaults holds a store to the contract while its network and its server fail.
func RunFaults(t *testing.T, newFaulty NewFaulty) {
	t.Helper()
	for _, c := range []struct {
		name string
		run  func(t *testing.T, f Faulty)
	}{
		{"reply to the one statement is lost", lostReply},
		{"reply to a statement of the transaction is lost", lostStep},
		{"replies are lost under load", lostUnderLoad},
		{"COMMIT is lost on its way", lostCommit},
		{"commit is refused", refusedCommit},
		{"server hangs", hangs},
		{"pooled connections are dead", deadConnections},
		{"reply to ReturnUnused is lost", lostReturn},
		{"ReturnUnused on dead connections", deadReturn},
		{"row is locked and the client gives up", lockedAndCut},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			c.run(t, newFaulty(t))
		})
	}
}

// ready makes one connection and one row, "tag", at 1 with step 7.
func ready(t *testing.T, f Faulty) {
	t.Helper()
	put(t, f.Backend, "tag", 1, 7)
	if _, err := f.Store.Lookup(ctx(t), "tag"); err != nil {
		t.Fatal(err)
	}
}

// lose reserves while the reply to text is cut off, and checks that there is no
// range. moved says whether the row must have moved.
func lose(t *testing.T, f Faulty, text string, believed int64, moved bool) {
	t.Helper()
	before := maxID(t, f.Store, "tag")
	sent := f.Wire.Cut(text)
	res, err := f.Store.Reserve(ctx(t), request("tag", believed, 7))
	n := sent()
	f.Wire.Heal()
	after := maxID(t, f.Store, "tag")
	if moved {
		after = movedFrom(t, f, before)
	}
	switch {
	case n == 0:
		t.Fatalf("no statement with %q was sent", text)
	case err == nil && n == 1:
		t.Errorf("reply to %q lost: Reserve returned %v", text, res)
	case err != nil && res != segment.Reservation{}:
		t.Errorf("reply to %q lost: Reserve returned %v beside %v", text, res, err)
	case moved && after == before:
		t.Errorf("reply to %q lost: the row did not move, so the cut came too early to prove anything", text)
	case err == nil && (res.Range.Lo < before || res.Range.Hi != after):
		t.Errorf("reply to %q lost and sent again: Reserve = %v, max_id %d to %d", text, res, before, after)
	}
	next, err := f.Store.Reserve(ctx(t), request("tag", believed, 7))
	if want := (leaf.Range{Lo: after, Hi: after + 7}); err != nil || next.Range != want {
		t.Errorf("Reserve afterwards = %v, %v; want %v", next, err, want)
	}
}

// movedFrom waits until max_id is not before any more, and returns it. A server may send
// the first rows of a message, whose reply is then cut off, before it has committed.
func movedFrom(t *testing.T, f Faulty, before int64) (after int64) {
	t.Helper()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(5 * time.Second); ; <-tick.C {
		if after = maxID(t, f.Store, "tag"); after != before || time.Now().After(end) {
			return after
		}
	}
}

func lostReply(t *testing.T, f Faulty) {
	ready(t, f)
	for range 3 {
		lose(t, f, f.Alone, 7, true)
	}
}

// lostStep loses a reply in each statement of a transaction: of Reserve, and of
// Raise, which may be repeated.
func lostStep(t *testing.T, f Faulty) {
	ready(t, f)
	for _, text := range []string{f.Begin, f.Write, f.Commit} {
		if !f.AlwaysAlone {
			lose(t, f, text, 0, text == f.Commit)
		}
		above := maxID(t, f.Store, "tag") + 1000
		sent := f.Wire.Cut(text)
		got, err := f.Store.Raise(ctx(t), "tag", above)
		if n := sent(); n == 0 || err == nil && n == 1 {
			t.Errorf("reply %d to %q lost: Raise = %d, %v", n, text, got, err)
		}
		f.Wire.Heal()
		if text == f.Commit && movedFrom(t, f, above-1000) != above {
			t.Errorf("reply to %q lost: the row did not move, so the cut came too early to prove anything", text)
		}
		if got, err := f.Store.Raise(ctx(t), "tag", above); err != nil || got != above {
			t.Errorf("Raise repeated = %d, %v; want %d", got, err, above)
		}
	}
}

// lostUnderLoad cuts replies at random statements while others reserve, and
// checks that what was returned never overlaps.
func lostUnderLoad(t *testing.T, f Faulty) {
	ready(t, f)
	texts := []string{f.Alone, f.Begin, f.Write, f.Commit}
	var mu sync.Mutex
	var ranges []leaf.Range
	var group sync.WaitGroup
	for caller := range 8 {
		group.Go(func() {
			for load := range 30 {
				if caller == 0 {
					f.Wire.Cut(texts[load%len(texts)])
				}
				believed := []int64{0, 7, 13}[(caller+load)%3]
				res, err := f.Store.Reserve(ctx(t), request("tag", believed, 7))
				if err != nil {
					continue
				}
				mu.Lock()
				ranges = append(ranges, res.Range)
				mu.Unlock()
			}
		})
	}
	group.Wait()
	f.Wire.Heal()
	if len(ranges) < 100 {
		t.Errorf("only %d of 240 calls succeeded", len(ranges))
	}
	slices.SortFunc(ranges, func(a, b leaf.Range) int { return int(a.Lo - b.Lo) })
	for i := range ranges[1:] {
		if ranges[i+1].Lo < ranges[i].Hi {
			t.Fatalf("ranges %v and %v overlap", ranges[i], ranges[i+1])
		}
	}
	if end := maxID(t, f.Store, "tag"); ranges[len(ranges)-1].Hi > end {
		t.Errorf("range %v lies above max_id %d", ranges[len(ranges)-1], end)
	}
}

func lostCommit(t *testing.T, f Faulty) {
	ready(t, f)
	before := maxID(t, f.Store, "tag")
	sent := f.Wire.CutBefore(f.Commit)
	got, err := f.Store.Raise(ctx(t), "tag", before+1000)
	if n := sent(); n != 1 || err == nil {
		t.Errorf("COMMIT lost after %d attempts: Raise = %d, %v", n, got, err)
	}
	if !f.AlwaysAlone {
		sent := f.Wire.CutBefore(f.Commit)
		res, err := f.Store.Reserve(ctx(t), request("tag", 0, 7))
		if n := sent(); n != 1 || err == nil || res != (segment.Reservation{}) {
			t.Errorf("COMMIT lost after %d attempts: Reserve = %v, %v; want no range", n, res, err)
		}
	}
	f.Wire.Heal()
	next, err := f.Store.Reserve(ctx(t), request("tag", 0, 7))
	if want := (leaf.Range{Lo: before, Hi: before + 7}); err != nil || next.Range != want {
		t.Errorf("Reserve afterwards = %v, %v; want %v", next, err, want)
	}
}

func refusedCommit(t *testing.T, f Faulty) {
	ready(t, f)
	for _, believed := range []int64{7, 0} {
		before := maxID(t, f.Store, "tag")
		allow := f.RefuseCommits(t)
		if res, err := f.Store.Reserve(ctx(t), request("tag", believed, 7)); err == nil || res != (segment.Reservation{}) {
			t.Errorf("Reserve with a refused commit = %v, %v; want no range", res, err)
		}
		if got, err := f.Store.Raise(ctx(t), "tag", before+1000); err == nil {
			t.Errorf("Raise with a refused commit = %d", got)
		}
		if err := f.Store.ReturnUnused(ctx(t), "tag", before, 0); err == nil {
			t.Error("ReturnUnused with a refused commit succeeded")
		}
		allow()
		res, err := f.Store.Reserve(ctx(t), request("tag", believed, 7))
		if want := (leaf.Range{Lo: before, Hi: before + 7}); err != nil || res.Range != want {
			t.Errorf("Reserve afterwards = %v, %v; want %v", res, err, want)
		}
	}
}

func hangs(t *testing.T, f Faulty) {
	ready(t, f)
	for name, call := range map[string]func(context.Context) error{
		"Reserve": func(c context.Context) error {
			_, err := f.Store.Reserve(c, request("tag", 7, 7))
			return err
		},
		"Reserve with step unknown": func(c context.Context) error {
			_, err := f.Store.Reserve(c, request("tag", 0, 7))
			return err
		},
		"ReturnUnused": func(c context.Context) error { return f.Store.ReturnUnused(c, "tag", 1, 0) },
		"Raise":        func(c context.Context) error { _, err := f.Store.Raise(c, "tag", 1000); return err },
		"Lookup":       func(c context.Context) error { _, err := f.Store.Lookup(c, "tag"); return err },
		"Rows":         func(c context.Context) error { _, err := f.Store.Rows(c); return err },
		"RowsAfter": func(c context.Context) error {
			_, err := f.Store.RowsAfter(c, "", 10)
			return err
		},
		"Bind":   func(c context.Context) error { return f.Store.Bind(c, alone) },
		"Delete": func(c context.Context) error { return f.Store.Delete(c, "tag") },
	} {
		if _, err := f.Store.Lookup(ctx(t), "tag"); err != nil { // a connection for the call to hang on
			t.Fatal(err)
		}
		f.Wire.Freeze()
		short, cancel := context.WithTimeout(t.Context(), 150*time.Millisecond)
		start := time.Now()
		err := call(short)
		late := time.Since(start) - 150*time.Millisecond
		cancel()
		f.Wire.Heal()
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%s on a silent server: %v; want DeadlineExceeded", name, err)
		}
		if late > slack {
			t.Errorf("%s on a silent server returned %v after its deadline", name, late)
		}
	}
	if _, err := f.Store.Reserve(ctx(t), request("tag", 7, 7)); err != nil {
		t.Errorf("Reserve when the server answers again: %v", err)
	}
}

func deadConnections(t *testing.T, f Faulty) {
	ready(t, f)
	failures := 0
	for i := range 20 {
		var group sync.WaitGroup
		for range 4 { // so that there are several connections
			group.Go(func() { _, _ = f.Store.Lookup(ctx(t), "tag") })
		}
		group.Wait()
		f.Wire.CutIdle()
		if _, err := f.Store.Reserve(ctx(t), request("tag", int64(i%2*7), 7)); err != nil {
			failures++ // the cut raced with the look at the connection
			t.Logf("Reserve: %v", err)
		}
	}
	if failures > 5 {
		t.Errorf("%d of 20 calls failed although a new connection would have served them", failures)
	}
}

func lostReturn(t *testing.T, f Faulty) {
	ready(t, f)
	for i, text := range []string{f.Commit, f.Write, f.Commit} {
		hi := int64(1000 - i*100)
		want := hi // of the row: what was not committed is rolled back
		put(t, f.Backend, "tag", hi, 7)
		sent := f.Wire.Cut(text)
		err := f.Store.ReturnUnused(ctx(t), "tag", hi, hi-50)
		if text == f.Commit {
			want = hi - 50
			movedFrom(t, f, hi)
		}
		_, lookErr := f.Store.Lookup(ctx(t), "tag")
		n := sent()
		f.Wire.Heal()
		if n != 1 || lookErr != nil {
			t.Errorf("%q was sent %d times (%v)", text, n, lookErr)
		}
		if err == nil || errors.Is(err, leaf.ErrConflict) || errors.Is(err, leaf.ErrUnknownTag) {
			t.Errorf("ReturnUnused with the reply to %q lost: %v; want an error that claims to know nothing", text, err)
		}
		if res, err := f.Store.Reserve(ctx(t), request("tag", 7, 7)); err != nil || res.Range != (leaf.Range{Lo: want, Hi: want + 7}) {
			t.Errorf("Reserve after the reply to %q of a ReturnUnused was lost = %v, %v; want 7 IDs from %d", text, res, err, want)
		}
	}
}

func deadReturn(t *testing.T, f Faulty) {
	ready(t, f)
	failures := 0
	for i := range int64(10) {
		hi := 10_000 - i*100
		put(t, f.Backend, "tag", hi, 7)
		if _, err := f.Store.Lookup(ctx(t), "tag"); err != nil {
			t.Fatal(err)
		}
		f.Wire.CutIdle()
		if err := f.Store.ReturnUnused(ctx(t), "tag", hi, hi-50); err != nil {
			failures++
			t.Logf("ReturnUnused: %v", err)
			continue
		}
		if got := maxID(t, f.Store, "tag"); got != hi-50 {
			t.Errorf("max_id = %d after ReturnUnused to %d", got, hi-50)
		}
	}
	if failures > 5 {
		t.Errorf("%d of 10 calls failed although a new connection would have served them", failures)
	}
}

// lockedAndCut: the server goes on waiting for the lock after its client is gone, and then
// carries out a statement whose reply no client waits for.
func lockedAndCut(t *testing.T, f Faulty) {
	ready(t, f)
	unlock := f.Lock(t, "tag")
	for _, believed := range []int64{7, 0, 7} {
		short, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		if res, err := f.Store.Reserve(short, request("tag", believed, 7)); err == nil {
			t.Errorf("Reserve of a locked row = %v", res)
		}
		cancel()
	}
	unlock()
	next := int64(1)
	for range 5 {
		res, err := f.Store.Reserve(ctx(t), request("tag", 7, 7))
		if err != nil || res.Range.Lo < next || res.Range.Len() != 7 {
			t.Fatalf("Reserve after the lock = %v, %v; want 7 IDs from %d on", res, err, next)
		}
		next = res.Range.Hi
	}
}
