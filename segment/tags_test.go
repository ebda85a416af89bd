package segment_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/segment"
)

func create(t *testing.T, s *store, tag string, start int64) {
	t.Helper()
	if err := s.Create(t.Context(), segment.NewRow{Tag: tag, Start: start, Step: 10}); err != nil {
		t.Fatal(err)
	}
}

// TestNewTagAtOnce: a tag that is created while the node runs is served by the
// next request, once the store's last "no" has expired.
func TestNewTagAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStore(row(10))
		a := node(t, s, nil, segment.Config{})
		create(t, s, "fresh", 77)
		if id := next(t, a, "fresh"); id != 77 {
			t.Fatalf("ID = %d, want 77", id)
		}

		_, err := a.Next(t.Context(), "later")
		wantErr(t, err, leaf.ErrUnknownTag)
		create(t, s, "later", 5)
		_, err = a.Next(t.Context(), "later")
		wantErr(t, err, leaf.ErrUnknownTag) // still remembered as unknown
		time.Sleep(time.Second)
		if id := next(t, a, "later"); id != 5 {
			t.Fatalf("ID = %d, want 5", id)
		}

		_, err = a.Next(t.Context(), "told")
		wantErr(t, err, leaf.ErrUnknownTag)
		create(t, s, "told", 1)
		if err := a.Refresh(t.Context(), "told"); err != nil {
			t.Fatal(err)
		}
		next(t, a, "told")
	})
}

// TestNegativeCache: an unknown tag costs the store one look-up per NegativeTTL.
func TestNegativeCache(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStore(row(10))
		lookups := 0
		s.set(func(s *store) {
			s.onLookup = func(context.Context, string) error { lookups++; return nil }
		})
		a := node(t, s, nil, segment.Config{NegativeTTL: 5 * time.Second})
		for range 1000 {
			_, err := a.Next(t.Context(), "nope")
			wantErr(t, err, leaf.ErrUnknownTag)
		}
		if lookups != 1 {
			t.Errorf("%d look-ups, want 1", lookups)
		}
		time.Sleep(5 * time.Second)
		_, err := a.Next(t.Context(), "nope")
		wantErr(t, err, leaf.ErrUnknownTag)
		if lookups != 2 {
			t.Errorf("%d look-ups after the time has passed, want 2", lookups)
		}
	})
}

// TestDeletedTag: it stops within the sync interval, and a handle to it works again when
// the tag is back; the fence still stands. vanished_test.go has the last tag.
func TestDeletedTag(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStore(row(100), segment.Row{Tag: "cart", MaxID: 1, Step: 10})
		a := node(t, s, nil, segment.Config{SyncInterval: 10 * time.Second})
		handle := a.Tag("order")
		unknown := a.Tag("not yet")
		for range 5 {
			if _, err := handle.Next(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		if err := s.Delete(t.Context(), "order"); err != nil {
			t.Fatal(err)
		}
		time.Sleep(11 * time.Second)
		for _, call := range []func(context.Context) (int64, error){handle.Next, unknown.Next} {
			_, err := call(t.Context())
			wantErr(t, err, leaf.ErrUnknownTag)
		}
		if st := a.Status(); st.Tags != 1 {
			t.Errorf("%d tags, want the other one", st.Tags)
		}

		create(t, s, "order", 101)
		create(t, s, "not yet", 1)
		time.Sleep(11 * time.Second)
		for want := int64(101); want < 250; want++ {
			got, err := handle.Next(t.Context())
			if err != nil || got != want {
				t.Fatalf("Next = %d, %v; want %d", got, err, want)
			}
		}
		if id, err := unknown.Next(t.Context()); err != nil || id != 1 {
			t.Fatalf("Next = %d, %v; want 1", id, err)
		}
	})
}

// TestRowDeletedUnderALoad: the load that finds no row ends the tag, once its stock is
// used up.
func TestRowDeletedUnderALoad(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStore(row(10))
		a := node(t, s, nil, segment.Config{SyncInterval: time.Hour, FixedStep: true})
		drain(t, a, "order", 1)
		synctest.Wait() // [1, 21) is in stock, or the load for it would already find no row
		if err := s.Delete(t.Context(), "order"); err != nil {
			t.Fatal(err)
		}
		for {
			id, err := a.Next(t.Context(), "order")
			if err != nil {
				wantErr(t, err, leaf.ErrUnknownTag)
				break
			}
			if id > 20 {
				t.Fatalf("ID %d: the tag goes on beyond its stock", id)
			}
			synctest.Wait() // a load that this ID asked for
		}
	})
}

// TestDeleteAndCreateUnderLoad races the removal of a tag against its callers. The
// row comes back above what was issued; nothing repeats, nothing hangs.
func TestDeleteAndCreateUnderLoad(t *testing.T) {
	s := newStore(row(20))
	a := node(t, s, nil, segment.Config{SyncInterval: 100 * time.Millisecond, NegativeTTL: time.Millisecond, FixedStep: true})
	ids := newLedger()
	stop := make(chan struct{})
	var callers sync.WaitGroup
	defer func() {
		close(stop)
		callers.Wait()
	}()
	for c := range 4 {
		callers.Go(func() {
			handle := a.Tag("order")
			for {
				select {
				case <-stop:
					return
				default:
				}
				var id int64
				var err error
				if c%2 == 0 {
					id, err = handle.Next(t.Context())
				} else {
					id, err = a.Next(t.Context(), "order")
				}
				switch leaf.ClassOf(err).Code {
				case "internal":
					if err != nil {
						t.Error(err)
						return
					}
					ids.add(t, "caller", id)
				case "unknown_tag", "not_ready", "exhausted":
				default:
					t.Error(err)
					return
				}
			}
		})
	}
	for range 30 {
		high := s.maxID(t, "order")
		if err := s.Delete(t.Context(), "order"); err != nil {
			t.Fatal(err)
		}
		if err := a.Refresh(t.Context(), "order"); err != nil {
			t.Fatal(err)
		}
		create(t, s, "order", high+1_000_000) // loads may have moved the row since it was read
		if err := a.Refresh(t.Context(), "order"); err != nil {
			t.Fatal(err)
		}
		before := ids.len()
		for ids.len() < before+200 {
			// A load that met the deleted row may still say "unknown" for a moment.
			id, err := a.Next(t.Context(), "order")
			if err == nil {
				ids.add(t, "main", id)
			} else if !errors.Is(err, leaf.ErrUnknownTag) {
				t.Fatal(err)
			}
		}
	}
}

// TestTagListedDuringASync keeps its place although the rows that the sync read
// are older than it.
func TestTagListedDuringASync(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStore(row(10))
		a := node(t, s, nil, segment.Config{SyncInterval: time.Minute})
		s.set(func(s *store) {
			s.onRows = func(context.Context) error { time.Sleep(5 * time.Second); return nil } // after reading
		})
		time.Sleep(61 * time.Second) // a sync is under way
		create(t, s, "young", 1)
		next(t, a, "young")
		time.Sleep(10 * time.Second)
		reserves := s.count()
		if id := next(t, a, "young"); id != 2 {
			t.Errorf("ID = %d, want 2: the sync threw the tag out", id)
		}
		synctest.Wait()
		if n := s.count() - reserves; n > 1 {
			t.Errorf("%d ranges reserved, want the prefetch at most", n)
		}
	})
}

// TestOptionsArriveBySync: an edit of leaf_tag_option counts from the next load
// after the next sync.
func TestOptionsArriveBySync(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStore(row(10))
		a := node(t, s, nil, segment.Config{SyncInterval: time.Minute})
		limit := int64(15)
		if err := s.Update(t.Context(), "order", segment.Change{MaxStep: &limit}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(61 * time.Second)
		for range 500 {
			before := s.maxID(t, "order")
			next(t, a, "order")
			synctest.Wait()
			if n := s.maxID(t, "order") - before; n > limit {
				t.Fatalf("a range of %d, the tag's limit is %d", n, limit)
			}
		}
	})
}

// TestPreload: the tags used during the last day, and no others, have their ranges
// before the first request of the next run; also after a crash.
func TestPreload(t *testing.T) {
	for _, clean := range []bool{true, false} {
		t.Run(fmt.Sprintf("clean=%v", clean), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, d := newStore(), newDisk()
				for _, tag := range []string{"used", "old", "never"} {
					s.Put(segment.Row{Tag: tag, MaxID: 1, Step: 1000})
				}
				config := segment.Config{RecentFor: time.Hour} // in a day of the bubble a node looks at its board 43,000 times
				a := node(t, s, d, config)
				next(t, a, "old")
				time.Sleep(62 * time.Minute)
				next(t, a, "used")
				time.Sleep(2 * time.Minute)
				if clean {
					closeNode(t, a)
				} else {
					d = d.copy() // the process is gone, the files stay
				}
				before := s.count()
				b := node(t, s, d, config)
				synctest.Wait()
				if n := s.count() - before; n != 1 {
					t.Errorf("%d ranges loaded at start, want the one of the recent tag", n)
				}
				waits := b.Status().Waits
				next(t, b, "used")
				if b.Status().Waits != waits {
					t.Error("the first request had to wait")
				}
			})
		})
	}
}

func TestDamagedRecentList(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDisk()
		d.files["recent.json"] = []byte("{torn")
		a := node(t, newStore(row(10)), d, segment.Config{})
		next(t, a, "order")
	})
}

func TestSnapshot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := node(t, newStore(row(100), segment.Row{Tag: "idle", MaxID: 1, Step: 1}), nil, segment.Config{FixedStep: true})
		drain(t, a, "order", 30)
		synctest.Wait()
		got := a.Snapshot()
		if len(got) != 1 {
			t.Fatalf("%d tags in use, want 1", len(got))
		}
		st := got[0]
		want := segment.TagStatus{
			Tag: "order", Store: "default", Step: 100, Length: 100, Current: leaf.Range{Lo: 1, Hi: 101},
			Position: 31, Next: leaf.Range{Lo: 101, Hi: 201}, Fence: 201, Stock: 170, Rate: 30, Issued: 30, LastLoad: time.Now(),
		}
		if st != want {
			t.Errorf("snapshot %+v, want %+v", st, want)
		}
	})
}

// TestSnapshotAfter: pages of each size show every tag in use once, in order.
func TestSnapshotAfter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		want := []string{"B", "a", "a b", "b", "c", "中"}
		rows := []segment.Row{{Tag: "aa", MaxID: 1, Step: 1}} // never used
		for _, tag := range want {
			rows = append(rows, segment.Row{Tag: tag, MaxID: 1, Step: 100})
		}
		a := node(t, newStore(rows...), nil, segment.Config{})
		for _, tag := range want {
			next(t, a, tag)
		}
		synctest.Wait()
		for limit := 1; limit <= len(want)+1; limit++ {
			var got []string
			after, more := "", true
			for more && len(got) <= len(want) {
				var page []segment.TagStatus
				page, more = a.SnapshotAfter(after, limit)
				if len(page) == 0 || len(page) > limit || more && len(page) != limit {
					t.Fatalf("SnapshotAfter(%q, %d): %d tags, more %v", after, limit, len(page), more)
				}
				for _, st := range page {
					got = append(got, st.Tag)
				}
				after = page[len(page)-1].Tag
			}
			if !slices.Equal(got, want) {
				t.Errorf("by pages of %d: %q, want %q", limit, got, want)
			}
		}
		if page, more := a.SnapshotAfter("", 0); page != nil || more {
			t.Errorf("a page of nothing: %v, %v", page, more)
		}
	})
}

// TestNewsDuringASync: what a management command told the node counts more than
// the rows that a sync read before.
func TestNewsDuringASync(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStore(row(10))
		a := node(t, s, nil, segment.Config{SyncInterval: time.Minute})
		next(t, a, "order")
		s.set(func(s *store) {
			s.onRows = func(context.Context) error { time.Sleep(5 * time.Second); return nil } // after reading
		})
		time.Sleep(61 * time.Second) // a sync is under way
		step := int64(700)
		if err := s.Update(t.Context(), "order", segment.Change{Step: &step}); err != nil {
			t.Fatal(err)
		}
		if err := a.Refresh(t.Context(), "order"); err != nil {
			t.Fatal(err)
		}
		time.Sleep(10 * time.Second)
		if got := a.Snapshot()[0].Step; got != step {
			t.Errorf("step = %d, want the newer %d", got, step)
		}
	})
}
