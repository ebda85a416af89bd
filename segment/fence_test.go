package segment_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/internal/test/long"
	"github.com/leaf-idgen/leaf/segment"
	"github.com/leaf-idgen/leaf/segment/fence"
)

// TestRegress: the ways a database goes backwards, met in the middle of a run. The
// first range below the fence is refused, so is every later one, also after a
// restart, until an operator repairs the tag; no ID repeats.
func TestRegress(t *testing.T) {
	for _, c := range []struct {
		name string
		back func(t *testing.T, s *store)
	}{
		{"max_id lowered", func(_ *testing.T, s *store) { s.Put(segment.Row{Tag: "order", MaxID: 40, Step: 10}) }},
		{"lowered by one", func(t *testing.T, s *store) {
			s.Put(segment.Row{Tag: "order", MaxID: s.maxID(t, "order") - 1, Step: 10})
		}},
		{"deleted and inserted again", func(_ *testing.T, s *store) {
			s.Remove("order")
			s.Put(row(10))
		}},
		{"restored with a larger step", func(_ *testing.T, s *store) { s.Put(segment.Row{Tag: "order", MaxID: 1, Step: 100_000}) }},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, d, ids := newStore(row(10)), newDisk(), newLedger()
				a := node(t, s, d, segment.Config{})
				ids.add(t, "before", drain(t, a, "order", 95)...)
				synctest.Wait()
				c.back(t, s)

				useUntil(t, a, ids, leaf.ErrRegress)
				loads := s.count()
				for range 5 { // also on the second try, and later
					_, err := a.Next(t.Context(), "order")
					wantErr(t, err, leaf.ErrRegress)
					time.Sleep(time.Minute)
				}
				if n := s.count(); n != loads {
					t.Errorf("a latched tag reserved %d more ranges", n-loads)
				}
				m := a.Mark("order")
				if !m.Latched || a.Status().Regresses != 1 {
					t.Errorf("mark %+v, status %+v; want latched and one regress", m, a.Status())
				}
				if st := a.Status(); st.Ready || !strings.Contains(strings.Join(st.Reasons, " "), `all tags of store "default" are latched`) {
					t.Errorf("status %+v, want not ready, since no other tag is left", st)
				}
				maxID := s.maxID(t, "order")
				closeNode(t, a)
				if got := s.maxID(t, "order"); got != maxID {
					t.Errorf("a latched tag was returned: max_id went from %d to %d", maxID, got)
				}

				a = node(t, s, d, segment.Config{})
				_, err := a.Next(t.Context(), "order")
				wantErr(t, err, leaf.ErrRegress)

				_, err = a.Repair(t.Context(), "order", m.High-2)
				wantErr(t, err, leaf.ErrConflict)
				if !strings.Contains(err.Error(), fmt.Sprintf("use %d or more", m.High)) {
					t.Errorf("text %q does not say which number works", err)
				}
				maxID, err = a.Repair(t.Context(), "order", m.High)
				if err != nil || maxID < m.High {
					t.Fatalf("Repair = %d, %v; want at least %d", maxID, err, m.High)
				}
				ids.add(t, "after", drain(t, a, "order", 300)...)
			})
		})
	}
}

// useUntil takes IDs until the wanted error.
func useUntil(t *testing.T, a *segment.Allocator, ids *ledger, want error) {
	t.Helper()
	for range 100_000 {
		id, err := a.Next(t.Context(), "order")
		if err != nil {
			wantErr(t, err, want)
			return
		}
		ids.add(t, "node", id)
		synctest.Wait()
	}
	t.Fatalf("no %v", want)
}

// TestLatchHoldsWhereTheFenceAloneWouldNot is why a regress latches (rule A): the
// refused statement moved the row, so the next range would lie above this node's
// fence although another node issued it.
func TestLatchHoldsWhereTheFenceAloneWouldNot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, d, ids := newStore(row(10)), newDisk(), newLedger()
		fixed := segment.Config{FixedStep: true, KeepUnused: true}
		on := struct{ segment.Store }{s} // without a board, which would say it after the restart
		a := node(t, on, d, fixed)
		ids.add(t, "a", drain(t, a, "order", 10)...) // [1, 21) reserved
		synctest.Wait()
		other := fixed
		other.NodeID = "node-2"
		b := node(t, s, nil, other)
		ids.add(t, "b", drain(t, b, "order", 10)...) // [21, 41) reserved
		synctest.Wait()
		s.Put(segment.Row{Tag: "order", MaxID: 15, Step: 10}) // lost commits
		useUntil(t, a, ids, leaf.ErrRegress)                  // [15, 25) refused, the row is at 25
		closeNode(t, a)
		a = node(t, on, d, fixed)
		useUntil(t, a, ids, leaf.ErrRegress) // [25, 35) would pass a's fence of 21 and repeat b's
		if m := a.Mark("order"); m.High != 21 {
			t.Fatalf("mark %+v: the test no longer tests what it says", m)
		}
	})
}

// TestAnotherNodesReturnIsNoRegress (rule M): the fence counts own ranges only.
func TestAnotherNodesReturnIsNoRegress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, ids := newStore(row(100)), newLedger()
		a := node(t, s, nil, segment.Config{NodeID: "a", FixedStep: true, SyncInterval: time.Second})
		b := node(t, s, nil, segment.Config{NodeID: "b", FixedStep: true})
		ids.add(t, "a", drain(t, a, "order", 1)...)
		ids.add(t, "b", drain(t, b, "order", 1)...)
		time.Sleep(2 * time.Second) // a reads the row with b's end
		closeNode(t, b)             // which goes back
		ids.add(t, "a", drain(t, a, "order", 500)...)
	})
}

// TestFenceBeforeServe (rule B): no ID of a range is out before the range's end is
// synced, and a range whose end cannot be written is dropped.
func TestFenceBeforeServe(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, d := newStore(row(10)), newDisk()
		a := node(t, s, d, segment.Config{FixedStep: true})
		first := drain(t, a, "order", 10)
		increasing(t, first)
		if !bytes.Contains(d.content("fence"), []byte(`"high":11`)) {
			t.Fatalf("IDs up to 10 are out, the fence file says %s", d.content("fence"))
		}

		broken := errors.New("disk full")
		d.set(func(d *disk) {
			d.onSync = func() error { return broken }
			d.onReplace = func(string) error { return broken }
		})
		synctest.Wait()
		stock := 0
		for {
			if _, err := a.Next(t.Context(), "order"); err != nil {
				wantErr(t, err, leaf.ErrExhausted)
				wantErr(t, err, broken)
				break
			}
			stock++
		}
		reserved := s.count()
		for range 5 {
			_, err := a.Next(t.Context(), "order")
			wantErr(t, err, leaf.ErrExhausted)
		}
		if n := s.count() - reserved; n != 0 {
			t.Errorf("%d ranges reserved and burnt while the fence could not be written", n)
		}
		d.set(func(d *disk) { d.onSync, d.onReplace = nil, nil })
		time.Sleep(time.Second)
		id := next(t, a, "order")
		if id <= first[9]+int64(stock) {
			t.Errorf("ID %d after the disk healed, want a new one", id)
		}
	})
}

// TestLatchOnABrokenDisk holds in memory, and reaches the disk as soon as that works
// again, at the latest when the node stops.
func TestLatchOnABrokenDisk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, d := newStore(row(10)), newDisk()
		a := node(t, s, d, segment.Config{FixedStep: true})
		next(t, a, "order")
		s.Put(row(10))
		broken := errors.New("disk full")
		d.set(func(d *disk) {
			d.onSync = func() error { return broken }
			d.onReplace = func(string) error { return broken }
		})
		useUntil(t, a, newLedger(), leaf.ErrRegress)
		d.set(func(d *disk) { d.onSync, d.onReplace = nil, nil })
		_, err := a.Next(t.Context(), "order")
		wantErr(t, err, leaf.ErrRegress)
		closeNode(t, a)
		a = node(t, s, d, segment.Config{})
		_, err = a.Next(t.Context(), "order")
		wantErr(t, err, leaf.ErrRegress)
	})
}

// TestDiskThatHeals: what could not be written gets to the disk soon after it is well,
// whether anything loads or not: a latch must not be forgotten in a crash hours later.
func TestDiskThatHeals(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, d, al := newStore(row(10)), newDisk(), newAlarms()
		on := struct{ segment.Store }{s} // without a board: each look at one writes what is missing
		a := node(t, on, d, segment.Config{FixedStep: true, Alarms: al})
		next(t, a, "order")
		s.Put(row(10))
		broken := errors.New("disk full")
		d.set(func(d *disk) {
			d.onSync = func() error { return broken }
			d.onReplace = func(string) error { return broken }
		})
		useUntil(t, a, newLedger(), leaf.ErrRegress)
		time.Sleep(time.Minute)
		al.want(t, "disk fence", "regress order")
		d.set(func(d *disk) { d.onSync, d.onReplace = nil, nil })
		time.Sleep(2 * time.Second)
		al.want(t, "regress order")
		crashed := node(t, on, d.copy(), segment.Config{})
		if !crashed.Mark("order").Latched {
			t.Error("the latch is forgotten")
		}
	})
}

// TestFenceWritesAreShared: many tags that load at once share syncs, and all their
// marks survive.
func TestFenceWritesAreShared(t *testing.T) {
	s, d := newStore(), newDisk()
	const tags = 200
	for i := range tags {
		s.Put(segment.Row{Tag: fmt.Sprint("tag-", i), MaxID: 1, Step: 5})
	}
	var syncs atomic.Int64
	d.onSync = func() error { syncs.Add(1); return nil }
	a := node(t, s, d, segment.Config{MaxLoads: 50, KeepUnused: true})
	var callers sync.WaitGroup
	for i := range tags {
		callers.Go(func() { drain(t, a, fmt.Sprint("tag-", i), 50) })
	}
	callers.Wait()
	closeNode(t, a)
	b := newNode(t, s, d, segment.Config{})
	for i := range tags {
		tag := fmt.Sprint("tag-", i)
		if got, want := b.Mark(tag), a.Mark(tag); got != want || got.High != s.maxID(t, tag) {
			t.Fatalf("%s: mark %+v after restart, %+v before, max_id %d", tag, got, want, s.maxID(t, tag))
		}
	}
	t.Logf("%d ranges, %d syncs", s.count(), syncs.Load())
}

// fenceFile returns a file with one header and three writes.
func fenceFile(t *testing.T) []byte {
	t.Helper()
	d := newDisk()
	s := newStore(row(10))
	a := node(t, s, d, segment.Config{KeepUnused: true, FixedStep: true})
	drain(t, a, "order", 15)
	closeNode(t, a)
	content := d.content("fence")
	if n := bytes.Count(content, []byte("\n")); n < 3 {
		t.Fatalf("fence file has %d lines, want a header and some writes: %s", n, content)
	}
	return content
}

// TestTornFenceFile cuts the file at every byte and spoils every byte: the node
// starts with a mark no lower than an acknowledged one, or refuses to start.
func TestTornFenceFile(t *testing.T) {
	whole := fenceFile(t)
	lines := bytes.SplitAfter(whole, []byte("\n"))
	lines = lines[:len(lines)-1]
	lastLine := len(whole) - len(lines[len(lines)-1])
	full := markOf(t, whole)
	before := markOf(t, whole[:lastLine])
	if full.High <= before.High {
		t.Fatalf("marks %+v and %+v: the last line should raise the mark", before, full)
	}
	for cut := range whole {
		m, err := openWith(whole[:cut])
		atLine := bytes.HasSuffix(whole[:cut], []byte("\n"))
		switch {
		case cut < len(lines[0]):
			if err == nil {
				t.Fatalf("cut at %d: a file without a whole header was accepted", cut)
			}
		case err != nil:
			t.Fatalf("cut at %d: %v; a torn last line was never acknowledged", cut, err)
		case cut > lastLine && m.High < before.High:
			t.Fatalf("cut at %d: mark %+v is below the acknowledged %+v", cut, m, before)
		case atLine && m != markOf(t, whole[:cut]):
			t.Fatalf("cut at %d: mark %+v", cut, m)
		}
	}
	for i := range whole {
		spoilt := bytes.Clone(whole)
		spoilt[i] ^= 0x10
		m, err := openWith(spoilt)
		if i < lastLine {
			if err == nil {
				t.Fatalf("byte %d spoilt: accepted with %+v", i, m)
			}
			if !strings.Contains(err.Error(), "fence file, line") {
				t.Fatalf("byte %d spoilt: text %q does not name the file and line", i, err)
			}
		} else if err == nil && m.High < before.High {
			t.Fatalf("byte %d of the last line spoilt: mark %+v is below the acknowledged %+v", i, m, before)
		}
	}
}

func openWith(content []byte) (fence.Mark, error) {
	d := newDisk()
	d.files["fence"] = content
	router, err := segment.NewRouter([]segment.NamedStore{{Name: "default", Store: newStore()}}, nil)
	if err != nil {
		return fence.Mark{}, err
	}
	a, err := segment.New(router, d, segment.Config{NodeID: "node-1"})
	if err != nil {
		return fence.Mark{}, err
	}
	return a.Mark("order"), a.Close(context.Background())
}

func markOf(t *testing.T, content []byte) fence.Mark {
	t.Helper()
	m, err := openWith(content)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func TestForeignFenceFile(t *testing.T) {
	d := newDisk()
	d.files["fence"] = fenceFile(t)
	router, err := segment.NewRouter([]segment.NamedStore{{Name: "default", Store: newStore()}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	_, err = segment.New(router, d, segment.Config{NodeID: "node-2"})
	if err == nil || !strings.Contains(err.Error(), "belongs to node node-1") {
		t.Fatalf("New = %v, want a refusal that names the owner", err)
	}
}

// TestFenceFileWithoutIdentity: a program that left its identity out before keeps its fence when it gives it.
func TestFenceFileWithoutIdentity(t *testing.T) {
	d := newDisk()
	d.files["fence"] = []byte(seal(`{"file":"leaf-fence","version":2,"node":""}`) + seal(`[{"tag":"order","high":31}]`))
	d.files["fence-end"] = []byte(seal(`{"file":"leaf-fence-end","version":1,"node":"","lines":1}`))
	a, err := openDisk(d)
	if err != nil {
		t.Fatal(err)
	}
	if m := a.Mark("order"); m.High != 31 {
		t.Errorf("mark %+v, want the one of the file", m)
	}
	if err := a.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(d.content("fence")), `"node":"node-1"`) {
		t.Errorf("the file does not name its node: %s", d.content("fence"))
	}
}

// TestFenceFileIsCompacted: it does not grow with the number of loads.
func TestFenceFileIsCompacted(t *testing.T) {
	long.Plain(t)
	d := newDisk()
	tag := strings.Repeat("o", 128) // a long name needs fewer lines
	a := node(t, newStore(segment.Row{Tag: tag, MaxID: 1, Step: 1}), d, segment.Config{FixedStep: true})
	longest := 0
	for range 10_000 {
		next(t, a, tag)
		d.set(func(d *disk) { longest = max(longest, len(d.files["fence"])) })
	}
	if longest > 1<<20+1<<16 {
		t.Fatalf("fence file grew to %d bytes", longest)
	}
}

// FuzzFenceFile: no content makes the reader panic, and what it accepts it accepts
// again after the rewrite at start.
func FuzzFenceFile(f *testing.F) {
	f.Add([]byte(""))
	f.Add([]byte("00000000 {}\n"))
	f.Add([]byte("5d0a9b1e {\"file\":\"leaf-fence\",\"version\":1,\"node\":\"node-1\"}\nxx"))
	d := newDisk()
	if a, err := openDisk(d); err == nil {
		_ = a.Close(context.Background())
		f.Add(d.content("fence"))
	}
	f.Fuzz(func(t *testing.T, content []byte) {
		d := newDisk()
		d.files["fence"] = content
		a, err := openDisk(d)
		if err != nil {
			return
		}
		first := a.Mark("order")
		if err := a.Close(context.Background()); err != nil {
			t.Fatal(err)
		}
		b, err := openDisk(d)
		if err != nil {
			t.Fatalf("accepted once, refused after the rewrite: %v", err)
		}
		if got := b.Mark("order"); got != first {
			t.Fatalf("mark %+v after the rewrite, %+v before", got, first)
		}
		if err := b.Close(context.Background()); err != nil {
			t.Fatal(err)
		}
	})
}

func openDisk(d fence.Disk) (*segment.Allocator, error) {
	router, err := segment.NewRouter([]segment.NamedStore{{Name: "default", Store: newStore()}}, nil)
	if err != nil {
		return nil, err
	}
	return segment.New(router, d, segment.Config{NodeID: "node-1"})
}
